package integration

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/berthhq/berth/internal/lifecycle"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// A port's WebSocket sends the data of the program in the session, and no other frame.
func TestAPortSendsOnlyData(t *testing.T) {
	c := clustertest.New(t, 0)
	c.Grow(t, 1)
	c.Nodes[0].Network.ServePort = func(_ uint16, conn net.Conn) {
		defer conn.Close()
		for _, line := range []string{"hello", "and good-bye"} {
			fmt.Fprint(conn, line)
		}
	}
	id := c.Create(t, clustertest.SessionInput(nil, "sleep", "600"))
	c.WaitFor(t, id, lifecycle.Running)
	ctx, cancel := context.WithTimeout(t.Context(), managertest.Timeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(c.Member.URL, "http")+"/sessions/"+id.String()+"/ports/8888",
		&websocket.DialOptions{HTTPHeader: c.Member.Header.Clone()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	var frames []string
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			break
		}
		if kind != websocket.MessageBinary {
			t.Errorf("a frame of kind %v", kind)
		}
		frames = append(frames, string(data))
	}
	if got := fmt.Sprintf("%q", frames); got != `["hello" "and good-bye"]` {
		t.Errorf("the frames are %s", got)
	}
}
