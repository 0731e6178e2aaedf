package session

import (
	"context"
	"strings"

	"github.com/berthhq/berth/agent/agentpb"
)

// unreadable begins the message of a running session whose image is not complete and cannot be read now.
const unreadable = "files of the image cannot be read: "

// showUnreadable tells the owner of a running session that files of its image cannot be read, and that they
// can be read again.
func (s step) showUnreadable(ctx context.Context) error {
	text, known := "", true
	for _, k := range s.sess.Edges.Kernels {
		ob, ok := s.observed.Current(k)
		known = known && ok
		if ok && ob.Phase == agentpb.KernelState_RUNNING && ob.Message != "" {
			text = ob.Message
		}
	}
	shown := strings.HasPrefix(s.sess.StatusMessage, unreadable)
	switch {
	case text != "" && !shown:
		return s.notify(ctx, s.epoch, s.sess, "image_unreadable", unreadable+text[:min(len(text), maxReason)])
	case text == "" && known && shown:
		return s.notify(ctx, s.epoch, s.sess, "image_readable", "running")
	}
	return nil
}

// maxReason limits a reason that an agent gives, in bytes.
const maxReason = 500
