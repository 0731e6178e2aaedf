package driver

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

// busy is the delay after which a caller can retry an operation that the operating system could not
// perform.
const busy = time.Second

// failure is an error with a status. It wraps its cause.
type failure struct {
	status *status.Status
	cause  error
}

func (f *failure) Error() string              { return f.status.Message() }
func (f *failure) GRPCStatus() *status.Status { return f.status }
func (f *failure) Unwrap() error              { return f.cause }

// Error adds a gRPC status and a description of the operation to an error. An error with a status
// keeps it and its details.
func Error(doing string, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		s = statusOf(err)
	}
	if doing == "" {
		if ok {
			return err
		}
		return &failure{s, err}
	}
	p := s.Proto()
	p.Message = doing + ": " + p.GetMessage()
	return &failure{status.FromProto(p), err}
}

func statusOf(err error) *status.Status {
	if code := codeOf(err); code != codes.Unavailable {
		return status.New(code, err.Error())
	}
	return status.Convert(Retryable(busy, "%s", err.Error()))
}

func codeOf(err error) codes.Code {
	is := func(all ...error) bool {
		for _, e := range all {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case is(context.Canceled):
		return codes.Canceled
	case is(context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case is(unix.ENOENT):
		return codes.NotFound
	case is(unix.EEXIST):
		return codes.AlreadyExists
	case is(unix.ENOTEMPTY, unix.ENOTDIR, unix.ELOOP, unix.EXDEV, unix.EROFS, unix.EOPNOTSUPP, unix.ENOSYS, unix.ENOTTY):
		return codes.FailedPrecondition
	case is(unix.ENOSPC, unix.EDQUOT, unix.EMLINK, unix.ENFILE, unix.EMFILE):
		return codes.ResourceExhausted
	case is(unix.EACCES, unix.EPERM):
		return codes.PermissionDenied
	case is(unix.ENAMETOOLONG):
		return codes.InvalidArgument
	case is(unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.EBUSY, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ECONNREFUSED, unix.ECONNRESET, unix.ETIMEDOUT):
		return codes.Unavailable
	}
	return codes.Internal
}

// Retryable returns an UNAVAILABLE error that the proxy can retry after a delay.
func Retryable(after time.Duration, format string, args ...any) error {
	s, err := status.Newf(codes.Unavailable, format, args...).WithDetails(
		&pb.ErrorDetail{Retryable: true, RetryAfterMs: after.Milliseconds()})
	if err != nil {
		return status.Errorf(codes.Unavailable, format, args...)
	}
	return s.Err()
}

func is(err error, code codes.Code) bool { return err != nil && status.Code(Error("", err)) == code }
