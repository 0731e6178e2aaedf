package chat

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/conversation"
	"github.com/berthhq/berth/internal/problem"
)

var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// attachments checks files, and returns them with their contents one after the other.
func attachments(in []ChatAttachmentInput) (list []conversation.Attachment, data []byte, err error) {
	list = []conversation.Attachment{}
	if len(in) > maxFiles {
		return nil, nil, problem.Invalid("attachments", "has %d files, at most %d are allowed", len(in), maxFiles).WithLimit(fmt.Sprint(maxFiles))
	}
	pictures, texts := 0, 0
	for i, x := range in {
		at := fmt.Sprintf("attachments.%d", i)
		content, err := attachment(x)
		if err != nil {
			return nil, nil, problem.Within(err, at)
		}
		if x.Type == conversation.Text {
			texts += len(content)
		} else {
			pictures += len(content)
		}
		for _, sum := range []struct {
			what       string
			size, most int
		}{{"text", texts, maxTexts}, {"images", pictures, maxImages}, {"attachments", len(data) + len(content), maxAttached}} {
			if sum.size > sum.most {
				return nil, nil, problem.Invalid("attachments", "have more than %d MiB of %s", sum.most>>20, sum.what).WithLimit(fmt.Sprint(sum.most))
			}
		}
		list = append(list, conversation.Attachment{Name: x.Name, Type: x.Type, Size: len(content)})
		data = append(data, content...)
	}
	return list, data, nil
}

// attachment checks one file. An image must be what its type says, because engines and browsers decode it.
func attachment(x ChatAttachmentInput) ([]byte, error) {
	if n := utf8.RuneCountInString(x.Name); n == 0 || n > maxFileName || !utf8.ValidString(x.Name) || strings.ContainsAny(x.Name, "\x00\n\r/\\") {
		return nil, problem.Invalid("name", "must have 1 to %d characters, without slashes and line ends", maxFileName).WithLimit(fmt.Sprint(maxFileName))
	}
	if len(x.Data) > base64.StdEncoding.EncodedLen(maxAttached) {
		return nil, problem.Invalid("data", "has more than %d MiB", maxAttached>>20).WithLimit(fmt.Sprint(maxAttached))
	}
	content, err := base64.StdEncoding.DecodeString(x.Data)
	if err != nil {
		return nil, problem.Invalid("data", "is not Base64")
	}
	switch {
	case x.Type == conversation.Text:
		if !utf8.Valid(content) || slices.Contains(content, 0) {
			return nil, problem.Invalid("data", "is not text in UTF-8")
		}
	case !slices.Contains(images, x.Type):
		return nil, problem.Invalid("type", "%.100q is not %s or %s", x.Type, strings.Join(images, ", "), conversation.Text)
	case http.DetectContentType(content) != x.Type:
		return nil, problem.Invalid("data", "is not an image of the type %s", x.Type)
	}
	return content, nil
}

// AttachmentsOf returns the files of a prompt.
func AttachmentsOf(t *ent.ChatTurn) []*Attachment {
	out, from := make([]*Attachment, len(t.Files)), 0
	for i, f := range t.Files {
		out[i] = &Attachment{Attachment: f, Turn: t.ID, From: from}
		from += f.Size
	}
	return out
}
