package storagepb

import (
	"github.com/containerd/errdefs/pkg/errgrpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// NewFileResult returns the result for one path of a call with many paths.
func NewFileResult(path string, file *FileInfo, err error) *FileResult {
	if err == nil {
		return &FileResult{Path: path, File: file}
	}
	s := status.Convert(errgrpc.ToGRPC(err))
	return &FileResult{Path: path, Error: s.Message(), Code: uint32(s.Code())}
}

// Err returns the result's error in the form in which a call with this path alone would have
// returned it, or nil after success.
func (r *FileResult) Err() error {
	if r.GetError() == "" {
		return nil
	}
	return status.Error(codes.Code(r.Code), r.Error)
}
