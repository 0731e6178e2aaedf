package notice

import (
	"time"

	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/noticekind"
)

// payload is the body of a request of a webhook.
type payload struct {
	ID         uuid.UUID           `json:"id"` // of the delivery: the same in every attempt
	Notice     uuid.UUID           `json:"notice"`
	Kind       noticekind.Kind     `json:"kind"`
	Severity   noticekind.Severity `json:"severity"`
	Text       string              `json:"text"` // English
	Parameters map[string]string   `json:"parameters"`
	Count      int                 `json:"count"`
	Subject    *uuid.UUID          `json:"subject"`
	Link       string              `json:"link"` // ""; no link
	CreatedAt  time.Time           `json:"createdAt"`
}

// payloadOf returns the body about a notice.
func (s *Service) payloadOf(delivery uuid.UUID, n *ent.Notice) payload {
	return payload{ID: delivery, Notice: n.ID, Kind: n.Kind, Severity: n.Severity, Text: noticekind.Text(noticekind.English, n.Kind, n.Parameters, n.Count),
		Parameters: n.Parameters, Count: n.Count, Subject: n.SubjectID, Link: s.link(n.SubjectID, n.Kind), CreatedAt: n.CreatedAt}
}

// link returns the address of the page about an object; "" if there is none or if the address of the page is not known.
func (s *Service) link(subject *uuid.UUID, k noticekind.Kind) string {
	if s.PublicURL == "" {
		return ""
	}
	return s.PublicURL + Path(subject, k)
}

// Path returns the path of the page about a notice.
func Path(subject *uuid.UUID, k noticekind.Kind) string {
	if subject != nil {
		switch id.KindOf(*subject) {
		case id.Session:
			return "/sessions/" + subject.String()
		case id.Vfolder:
			return "/data/" + subject.String()
		case id.Deployment:
			return "/serving/" + subject.String()
		case id.Agent:
			return "/cluster"
		case id.ImageBuild:
			return "/account/images"
		}
	}
	switch k {
	case noticekind.FolderShared, noticekind.Quota:
		return "/data"
	case noticekind.StorageDown:
		return "/admin/volumes"
	}
	return "/account/notices"
}
