// Command modelmock serves an inference engine without a model; see the package modelmock.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/berthhq/berth/internal/modelmock"
)

func main() {
	var cfg modelmock.Config
	address := flag.String("listen", "127.0.0.1:8000", "address")
	flag.StringVar(&cfg.Model, "model", "mock", "name of the model")
	flag.Float64Var(&cfg.Prefill, "prefill", 0, "tokens of prompts per second; 0: without a delay")
	flag.Float64Var(&cfg.Decode, "decode", 0, "tokens of an answer per second; 0: without a delay")
	flag.IntVar(&cfg.MaxRunning, "max-running", 0, "sequences that are processed at once; 0: 256")
	flag.IntVar(&cfg.CacheBlocks, "cache-blocks", 0, "blocks of the prefix cache; 0: 4096")
	flag.DurationVar(&cfg.StartDelay, "start-delay", 0, "time until the engine is ready")
	flag.Parse()
	server := &http.Server{Addr: *address, Handler: modelmock.New(cfg), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
