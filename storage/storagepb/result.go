package storagepb

import (
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NewFileResult tells how it went with one path of a call about many.
func NewFileResult(path string, file *FileInfo, err error) *FileResult {
	if err == nil {
		return &FileResult{Path: path, File: file}
	}
	s := status.Convert(errgrpc.ToGRPC(err))
	return &FileResult{Path: path, Error: s.Message(), Code: uint32(s.Code())}
}

// Err is the result's error as a call about this path alone would have failed,
// nil when it went well.
func (r *FileResult) Err() error {
	if r.GetError() == "" {
		return nil
	}
	return status.Error(codes.Code(r.Code), r.Error)
}
