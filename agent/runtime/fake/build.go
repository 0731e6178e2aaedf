package fake

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/containerd/errdefs"

	"github.com/berthhq/berth/agent/build"
	"github.com/berthhq/berth/agent/runtime/push"
)

// Builders builds images whose only file is their Dockerfile. The instructions RUN fail and RUN wait fail and
// wait for the cancellation; RUN crash fails as a builder that was killed.
type Builders struct{ Host *Host }

// Build implements kernel.Builders.
func (b Builders) Build(ctx context.Context, _ string, r build.Request, report func(build.Event)) (*build.Result, error) {
	report(build.Event{Phase: "building"})
	steps := 0
	for line := range strings.Lines(r.Dockerfile) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		report(build.Event{Log: "STEP " + line + "\n"})
		verb, argument, _ := strings.Cut(line, " ")
		if verb != "RUN" {
			continue
		}
		steps++
		switch word, _, _ := strings.Cut(argument, " "); word {
		case "fail":
			return nil, &build.Error{Message: "exit code: 1", Step: line}
		case "crash":
			return nil, errdefs.ErrFailedPrecondition
		case "wait":
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
	}
	img, added, err := image(map[string]string{"/Dockerfile": r.Dockerfile}, nil)
	if err != nil {
		return nil, err
	}
	if r.MaxBytes > 0 && added > r.MaxBytes {
		return nil, &build.Error{Message: "the new layers are above the limit"}
	}
	sent, err := push.Push(ctx, push.Target{
		Repository: r.Output.Name, PlainHTTP: r.Output.PlainHTTP, Username: r.Output.Username, Password: r.Output.Password,
	}, img, nil)
	if err != nil {
		return nil, &build.Error{Message: err.Error()}
	}
	b.Host.offer(r.Output.Name, sent.Digest, nil)
	return &build.Result{Digest: sent.Digest, LayerBytes: added, Sent: sent.Sent, Steps: steps}, nil
}

// Fetch implements kernel.Builders. The Dockerfile of a repository is based on the image that the
// directory names. A path that begins with missing does not exist, and /private/TOKEN needs the token.
func (b Builders) Fetch(ctx context.Context, _ string, r build.Request, report func(build.Event)) (*build.Fetched, error) {
	report(build.Event{Log: "FETCH " + r.Source.Address + "\n"})
	u, err := url.Parse(r.Source.Address)
	if err != nil || strings.HasPrefix(u.Path, "/missing") {
		return nil, &build.Error{Message: "repository not found"}
	}
	if want := strings.TrimPrefix(u.Path, "/private/"); want != u.Path && r.Source.Password != want {
		return nil, &build.Error{Message: "authentication required"}
	}
	sum := sha1.Sum([]byte(r.Source.Address + r.Source.Ref))
	return &build.Fetched{Commit: hex.EncodeToString(sum[:]), File: "Dockerfile", Text: "FROM " + cmp.Or(r.Source.Directory, "prog:latest") + "\nRUN true\n"}, ctx.Err()
}
