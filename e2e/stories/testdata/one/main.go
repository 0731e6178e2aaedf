// Command one is the only program in the image of TestImageOfOneBinary.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
)

func main() {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "say":
		fmt.Println(strings.Join(os.Args[2:], " "))
	case len(os.Args) == 3 && os.Args[1] == "serve":
		l, err := net.Listen("tcp", os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("listening")
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "one binary") }))
	default:
		os.Exit(2)
	}
}
