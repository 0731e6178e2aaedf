package device

import (
	"context"
	"testing"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestACallThatNobodyCancelledMetTheEndOfThePlugin(t *testing.T) {
	closing := status.Error(codes.Canceled, "grpc: the client connection is closing")
	if err := native(t.Context(), closing); !errdefs.IsUnavailable(err) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := native(ctx, closing); !errdefs.IsCanceled(err) {
		t.Errorf("after the caller has left: %v", err)
	}
	if err := native(t.Context(), nil); err != nil {
		t.Errorf("%v", err)
	}
}
