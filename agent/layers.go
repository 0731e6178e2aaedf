package agent

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/berthhq/berth/agent/agentpb"
	"github.com/berthhq/berth/agent/layers"
	"github.com/berthhq/berth/agent/network"
	"github.com/berthhq/berth/agent/runtime"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/ticket"
)

// ImageConfig configures how images reach the node.
type ImageConfig struct {
	// Listen is the address at which other agents fetch parts of images: an IP address, a port or both.
	// The default address is the local one of the connection to the managers, the default port is
	// layers.DefaultPort. ImagesOff disables it: then the agent neither sends nor asks.
	Listen    string
	Transfers int // layers that are fetched at a time; 0 = containerd.DefaultTransfers
	Uploads   int // parts that are sent at a time; 0 = layers.DefaultUploads
	Cleanup   ImageCleanup
}

// ImagesOff as ImageConfig.Listen makes an agent fetch all images from their registries.
const ImagesOff = "off"

// exchange is the exchange of images with other agents.
type exchange struct {
	client   *layers.Client
	server   *layers.Server // nil if it is off
	listener net.Listener
	off      string // why it is off
}

// openLayers listens for other agents.
func (a *Agent) openLayers() (err error) {
	verifier := &ticket.Verifier{}
	a.exchange = &exchange{client: &layers.Client{Verifier: verifier, Meter: a.meter.layers, Logger: a.log, Pins: a.cleaner.pin}}
	parts, ok := a.runtime.(runtime.Parts)
	switch {
	case a.node == nil || !ok:
		a.exchange.off = "it has no managers or no containers"
		return nil
	case a.cfg.Images.Listen == ImagesOff:
		a.exchange.off = "it is switched off there"
		return nil
	}
	a.exchange.client.Dial = a.node.DialNode
	at, err := layers.ParseEndpoint(a.cfg.Images.Listen, network.Known(a.cfg.Managers...))
	if err != nil {
		return err
	}
	if !at.Addr().IsValid() {
		a.exchange.off = "the machine has no address that others can reach"
		return nil
	}
	l, err := net.Listen("tcp", at.String())
	if errors.Is(err, unix.EADDRINUSE) && a.cfg.Images.Listen == "" {
		a.exchange.off = fmt.Sprintf("%s is in use; --image-exchange sets another address", at)
		a.log.Warn("no images for other agents", "reason", a.exchange.off)
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen for other agents: %w", err)
	}
	a.exchange.listener = l
	a.exchange.server = &layers.Server{
		Parts: parts, Verifier: verifier, Uploads: make(chan struct{}, cmp.Or(a.cfg.Images.Uploads, layers.DefaultUploads)),
		Caller: func(r *http.Request) string { return cluster.OtherNode(*r.TLS) },
		Meter:  a.meter.layers, Logger: a.log,
	}
	return nil
}

// serveLayers serves other agents until ctx ends.
func (a *Agent) serveLayers(ctx context.Context) {
	if a.exchange.server == nil {
		return
	}
	if err := a.exchange.server.Serve(ctx, a.exchange.listener, a.node.ServeNodes()); err != nil {
		a.log.Error("images for other agents", "error", err)
	}
}

// peersFor returns the other agents as a source of an image, or nil.
func (a *Agent) peersFor(r *agentpb.PullImageRequest) runtime.Peers {
	if a.exchange.client.Dial == nil || r.Digest == "" {
		return nil
	}
	return a.exchange.client.For(r.Digest)
}

// Layers serves the answers of the leading manager.
func (s *server) Layers(stream grpc.BidiStreamingServer[agentpb.LayerAnswer, agentpb.LayerQuestion]) error {
	return s.a.exchange.client.Answers(stream)
}

// describeLayers adds the exchange of images to a report.
func (a *Agent) describeLayers(r *agentpb.Report) {
	p := &agentpb.Probe{Name: "image-exchange", Detail: a.exchange.off}
	if a.exchange.server != nil {
		r.Layers = a.exchange.listener.Addr().String()
		p.Ok, p.Detail = true, "other agents fetch images from "+r.Layers
	}
	if a.node != nil {
		r.Probes = append(r.Probes[:len(r.Probes):len(r.Probes)], p)
	}
}

// contentOf returns the parts of an image for the report.
func contentOf(img runtime.Image) (*agentpb.ImageContent, error) {
	sum, err := binary(img.Digest)
	if err != nil {
		return nil, err
	}
	c := &agentpb.ImageContent{Reference: img.Reference, Digest: sum}
	if !img.Used.IsZero() {
		c.UsedUnixMs = img.Used.UnixMilli()
	}
	if c.Message = img.Whole; img.Lazy != nil {
		c.LocalBytes, c.TotalBytes, c.Message = img.Lazy.Local, img.Lazy.Total, img.Lazy.Failing
	}
	for _, p := range img.Parts {
		if sum, err = binary(p.Digest); err != nil {
			return nil, err
		}
		c.Layers = append(c.Layers, &agentpb.Layer{Digest: sum, Size: p.Size})
	}
	return c, nil
}

// binary returns the bytes of a digest.
func binary(text string) ([]byte, error) {
	d, err := digest.Parse(text)
	if err != nil || d.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("digest %.80q is not sha256: %w", text, errdefs.ErrInvalidArgument)
	}
	return hex.DecodeString(d.Encoded())
}
