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

// busy is after how long a caller may try again what the operating system could
// not do now.
const busy = time.Second

// failure is an error with its status. What caused it can still be found in it.
type failure struct {
	status *status.Status
	cause  error
}

func (f *failure) Error() string              { return f.status.Message() }
func (f *failure) GRPCStatus() *status.Status { return f.status }
func (f *failure) Unwrap() error              { return f.cause }

// Error gives an error its gRPC status and says what was being done. An error that
// has a status keeps it, with its details.
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

// Retryable is an UNAVAILABLE that the proxy may repeat after a while.
func Retryable(after time.Duration, format string, args ...any) error {
	s, err := status.Newf(codes.Unavailable, format, args...).WithDetails(
		&pb.ErrorDetail{Retryable: true, RetryAfterMs: after.Milliseconds()})
	if err != nil {
		return status.Errorf(codes.Unavailable, format, args...)
	}
	return s.Err()
}

func is(err error, code codes.Code) bool { return err != nil && status.Code(Error("", err)) == code }
