package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/manager/app"
)

// service is the service of gRPC's interoperability tests. It sends a message of a stream only when
// the test permits it, and reports the end of calls that are cancelled.
type service struct {
	testpb.UnimplementedTestServiceServer
	step  <-chan struct{}
	ended chan error
}

func testService(step <-chan struct{}) *grpc.Server {
	srv := grpc.NewServer()
	testpb.RegisterTestServiceServer(srv, &service{step: step})
	return srv
}

// UnaryCall returns the payload, the metadata and the status of the request.
func (s *service) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	_ = grpc.SetHeader(ctx, metadata.Pairs("x-header", strings.Join(md["x-asked"], ",")))
	_ = grpc.SetTrailer(ctx, metadata.Pairs("x-trailer-bin", "\x00\x01\xff"))
	if st := in.GetResponseStatus(); st != nil {
		return nil, status.Error(codes.Code(st.Code), st.Message)
	}
	return &testpb.SimpleResponse{Payload: in.Payload}, nil
}

// StreamingInputCall returns the total size of the messages.
func (s *service) StreamingInputCall(stream testpb.TestService_StreamingInputCallServer) error {
	all := 0
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{AggregatedPayloadSize: int32(all)})
		}
		if err != nil {
			return err
		}
		all += len(in.Payload.GetBody())
	}
}

func (s *service) StreamingOutputCall(in *testpb.StreamingOutputCallRequest, stream testpb.TestService_StreamingOutputCallServer) error {
	if err := stream.SendHeader(nil); err != nil { // the client waits for the header before it permits the first message
		return err
	}
	for range in.ResponseParameters {
		select {
		case <-s.step:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: in.Payload}); err != nil {
			return err
		}
	}
	return nil
}

// FullDuplexCall answers each message before it reads the next one.
func (s *service) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	for {
		in, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			s.ended <- stream.Context().Err()
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{Payload: in.Payload}); err != nil {
			return err
		}
	}
}

// prefixed adds a path before the methods of calls, as clients in path mode do.
type prefixed struct {
	*grpc.ClientConn
	prefix string
}

func (b prefixed) Invoke(ctx context.Context, method string, in, out any, opts ...grpc.CallOption) error {
	return b.ClientConn.Invoke(ctx, b.prefix+method, in, out, opts...)
}

func (b prefixed) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return b.ClientConn.NewStream(ctx, d, b.prefix+method, opts...)
}

// A gRPC client and a gRPC server that supports only HTTP/2 without TLS work through the gateway.
func TestGRPC(t *testing.T) {
	for _, mode := range []string{"hosts", "paths", "ports"} {
		t.Run(mode, func(t *testing.T) {
			step := make(chan struct{})
			s := &service{step: step, ended: make(chan error, 1)}
			srv := grpc.NewServer()
			testpb.RegisterTestServiceServer(srv, s)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = srv.Serve(l) }()
			t.Cleanup(srv.Stop)
			w := newWorldAt(t, l.Addr().(*net.TCPAddr).Port)
			prefix := ""
			switch mode {
			case "paths":
				w.host = "paths.test"
				prefix = app.PathPrefix + w.e.target.Label()
			case "ports":
				w.onPort(20003)
			}
			conn, err := grpc.NewClient(strings.TrimPrefix(w.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(w.host))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			c := testpb.NewTestServiceClient(prefixed{conn, prefix})
			t.Run("unary", func(t *testing.T) { unaryCalls(t, c) })
			t.Run("streams", func(t *testing.T) { streams(t, c, step) })
			t.Run("ends", func(t *testing.T) { ends(t, w, c, s) })
		})
	}
}

func payload(n int) *testpb.Payload { return &testpb.Payload{Body: bytes.Repeat([]byte("x"), n)} }

func unaryCalls(t *testing.T, c testpb.TestServiceClient) {
	var header, trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-asked", "one", "x-asked", "two", "cookie", "berth-app=secret; theirs=1")
	got, err := c.UnaryCall(ctx, &testpb.SimpleRequest{Payload: payload(3 << 20)}, grpc.Header(&header), grpc.Trailer(&trailer), grpc.MaxCallRecvMsgSize(8<<20))
	if err != nil || len(got.Payload.Body) != 3<<20 {
		t.Fatalf("3 MiB: %d bytes, %v", len(got.GetPayload().GetBody()), err)
	}
	if h := header["x-header"]; len(h) != 1 || h[0] != "one,two" {
		t.Errorf("header %v", header)
	}
	if tr := trailer["x-trailer-bin"]; len(tr) != 1 || tr[0] != "\x00\x01\xff" {
		t.Errorf("trailer %v", trailer)
	}
	trailer = nil
	const message = "\t\ntest with whitespace\r\nand Unicode ☺\t\n"
	_, err = c.UnaryCall(t.Context(), &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: int32(codes.DataLoss), Message: message}}, grpc.Trailer(&trailer))
	if st := status.Convert(err); st.Code() != codes.DataLoss || st.Message() != message || len(trailer["x-trailer-bin"]) != 1 {
		t.Errorf("a failure: %v, trailer %v", err, trailer)
	}
	if _, err := c.UnimplementedCall(t.Context(), &testpb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that does not exist: %v", err)
	}
}

func streams(t *testing.T, c testpb.TestServiceClient, step chan<- struct{}) {
	down, err := c.StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{ResponseParameters: make([]*testpb.ResponseParameters, 4), Payload: payload(10)})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		step <- struct{}{}
		if m, err := down.Recv(); err != nil || len(m.Payload.Body) != 10 {
			t.Fatalf("a message of the server: %v", err)
		}
	}
	if _, err := down.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	up, err := c.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := up.Send(&testpb.StreamingInputCallRequest{Payload: payload(100_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err := up.CloseAndRecv(); err != nil || sum.AggregatedPayloadSize != 5_000_000 {
		t.Errorf("messages of the client: %v, %v", sum, err)
	}
	both, err := c.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{8, 70_000, 0, 1} {
		if err := both.Send(&testpb.StreamingOutputCallRequest{Payload: payload(n)}); err != nil {
			t.Fatal(err)
		}
		if m, err := both.Recv(); err != nil || len(m.Payload.Body) != n {
			t.Fatalf("%d bytes there and back: %v", n, err)
		}
	}
	if err := both.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

// ends tries the ways in which a call can end before the server ends it. The server notices all of
// them.
func ends(t *testing.T, w *world, c testpb.TestServiceClient, s *service) {
	begin := func(ctx context.Context) testpb.TestService_FullDuplexCallClient {
		t.Helper()
		call, err := c.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := call.Send(&testpb.StreamingOutputCallRequest{Payload: payload(1)}); err != nil {
			t.Fatal(err)
		}
		if _, err := call.Recv(); err != nil {
			t.Fatal(err)
		}
		return call
	}
	over := func(name string) {
		t.Helper()
		select {
		case err := <-s.ended:
			if err == nil {
				t.Errorf("%s: the call at the server has not ended", name)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the call continues at the server", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	call := begin(ctx)
	cancel()
	if _, err := call.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("canceled: %v", err)
	}
	over("canceled")
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	call = begin(ctx)
	if _, err := call.Recv(); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
	over("deadline")
	call = begin(t.Context())
	w.e.end() // as when the login, the permission or the session ends
	if _, err := call.Recv(); err == nil {
		t.Error("the call continues without permission")
	}
	over("without a right")
}

// A program that is rejected gets the gRPC status that corresponds to the HTTP status.
func TestGRPCIsRefused(t *testing.T) {
	w := newWorld(t, http.NotFoundHandler())
	conn, err := grpc.NewClient(strings.TrimPrefix(w.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("other.test"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := testpb.NewTestServiceClient(conn).EmptyCall(t.Context(), &testpb.Empty{}); err == nil || status.Code(err) == codes.OK {
		t.Errorf("another host: %v", err)
	}
}
