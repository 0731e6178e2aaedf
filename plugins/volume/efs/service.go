package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
	pb "github.com/berthhq/berth/plugins/volume/volumepb"
)

const (
	attempts = 5
	// longestPause limits the pause between two attempts. Calls do not wait longer.
	longestPause = 5 * time.Second
	// later is the delay after which the proxy can retry a call that AWS throttled.
	later = 10 * time.Second
)

// service is a client of the EFS API for one file system.
type service struct {
	id          string
	client      *efs.Client
	http        *http.Client
	credentials aws.CredentialsProvider
	hidden      driver.Hidden // the credentials
}

func connect(o options) (*service, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		raw, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "options: ca_file: %v", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(raw) {
			return nil, status.Errorf(codes.InvalidArgument, "options: ca_file: %s has no certificate", o.CAFile)
		}
	}
	s := &service{id: o.FileSystem, http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: t, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second},
		Timeout:   o.Timeout,
		// Redirects are not followed, so that signed requests are sent only to the address that the
		// operator configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	s.credentials = o.provider(s.http, &s.hidden)
	settings := efs.Options{
		Region: o.Region, Credentials: s.credentials, HTTPClient: s.http, AppID: "berth",
		Retryer: retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = attempts, longestPause
		}),
	}
	if o.Endpoint != "" {
		settings.BaseEndpoint = aws.String(o.Endpoint)
	}
	s.client = efs.New(settings)
	return s, nil
}

// describe returns the description of the file system.
func (s *service) describe(ctx context.Context) (*types.FileSystemDescription, error) {
	var out *efs.DescribeFileSystemsOutput
	err := s.ask("describe "+s.id, func() (err error) {
		out, err = s.client.DescribeFileSystems(ctx, &efs.DescribeFileSystemsInput{FileSystemId: &s.id})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(out.FileSystems) != 1 || out.FileSystems[0].SizeInBytes == nil {
		return nil, status.Errorf(codes.Internal, "describe %s: %d file systems instead of one, or a file system without a size", s.id, len(out.FileSystems))
	}
	return &out.FileSystems[0], nil
}

// pageSize is the number of mount targets per request; AWS returns at most 100.
const pageSize = 100

// targets returns the mount targets, one per availability zone.
func (s *service) targets(ctx context.Context) (all []types.MountTargetDescription, err error) {
	pages := efs.NewDescribeMountTargetsPaginator(s.client, &efs.DescribeMountTargetsInput{FileSystemId: &s.id, MaxItems: aws.Int32(pageSize)},
		func(o *efs.DescribeMountTargetsPaginatorOptions) { o.StopOnDuplicateToken = true })
	for pages.HasMorePages() {
		var page *efs.DescribeMountTargetsOutput
		err := s.ask("mount targets of "+s.id, func() (err error) {
			page, err = pages.NextPage(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page.MountTargets...)
	}
	return all, nil
}

// ask makes a call, and repeats it with renewed credentials if they were refused.
func (s *service) ask(doing string, f func() error) error {
	err := f()
	if status.Code(s.meaning(err)) == codes.Unauthenticated {
		if c, ok := s.credentials.(*aws.CredentialsCache); ok {
			c.Invalidate()
			err = f()
		}
	}
	return driver.Error(doing, s.meaning(err))
}

// Error codes of AWS that concern the caller. Some names differ between services by a suffix, so
// only the beginning is compared.
var (
	refused = []string{"ExpiredToken", "UnrecognizedClient", "InvalidSignature", "SignatureDoesNotMatch", "InvalidClientTokenId", "IncompleteSignature", "MissingAuthenticationToken", "RequestExpired"}
	denied  = []string{"AccessDenied", "NotAuthorized"}
	busy    = []string{"Throttling", "TooManyRequests", "RequestLimitExceeded", "InternalServerError", "ServiceUnavailable", "DependencyTimeout", "RequestTimeout"}
)

// meaning converts an error of the SDK to a gRPC error. AWS's messages about signatures contain the
// whole request, so only the first line of a message is used.
func (s *service) meaning(err error) error {
	if err == nil {
		return nil
	}
	var statusErr interface{ GRPCStatus() *status.Status }
	if errors.As(err, &statusErr) { // of the credentials
		return statusErr.GRPCStatus().Err()
	}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) && !errors.As(err, new(*smithyhttp.RequestSendError)) {
			return status.FromContextError(end).Err()
		}
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return driver.Retryable(later, "AWS does not answer: %s", firstLine(s.hidden.Redact(silence(err))))
	}
	begins := func(all []string) bool {
		for _, name := range all {
			if strings.HasPrefix(api.ErrorCode(), name) {
				return true
			}
		}
		return false
	}
	var answer *smithyhttp.ResponseError
	http5 := errors.As(err, &answer) && (answer.HTTPStatusCode() >= 500 || answer.HTTPStatusCode() == http.StatusTooManyRequests)
	d := &pb.ErrorDetail{VendorCode: firstLine(s.hidden.Redact(api.ErrorCode()))}
	code := codes.Internal
	switch {
	case begins(refused):
		code = codes.Unauthenticated
	case begins(denied):
		code = codes.PermissionDenied
	case begins(busy), http5:
		code, d.Retryable, d.RetryAfterMs = codes.Unavailable, true, later.Milliseconds()
	case api.ErrorCode() == "FileSystemNotFound": // not NOT_FOUND, which means a missing scope
		code = codes.FailedPrecondition
	case api.ErrorCode() == "BadRequest", api.ErrorCode() == "ValidationException":
		code = codes.InvalidArgument
	}
	out := status.New(code, fmt.Sprintf("AWS: %s: %s", d.VendorCode, firstLine(s.hidden.Redact(api.ErrorMessage()))))
	if with, err := out.WithDetails(d); err == nil {
		out = with
	}
	return out.Err()
}

// silence returns why there was no response, without the SDK's additions.
func silence(err error) string {
	var send *smithyhttp.RequestSendError
	if errors.As(err, &send) {
		err = send.Err
	}
	return err.Error()
}

// longestText limits the part of a message that is shown.
const longestText = 300

func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.ToValidUTF8(strings.TrimSpace(text), "?"), "\n")
	return text[:min(len(text), longestText)]
}
