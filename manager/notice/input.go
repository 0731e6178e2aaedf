package notice

import (
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/noticesetting"
	"github.com/berthhq/berth/internal/noticekind"
)

// MarkNoticesReadInput names notices; none: all.
type MarkNoticesReadInput struct{ Ids []uuid.UUID } //nolint:revive // the name of the API

// MarkNoticesReadPayload has the number that were unread.
type MarkNoticesReadPayload struct{ Marked int }

// RoutesInput chooses the routes of one kind; nil: the default.
type RoutesInput struct {
	Kind   noticekind.Kind
	Routes []noticekind.Route
}

// SetNoticeSettingsInput changes the fields that are set.
type SetNoticeSettingsInput struct {
	Language *noticesetting.Language
	Kinds    []RoutesInput
}

// Settings is what a person chose, with the defaults.
type Settings struct {
	Language noticesetting.Language
	Mail     bool
	Kinds    []*KindRoutes
}

// KindRoutes is the routes of a kind.
type KindRoutes struct {
	Kind      noticekind.Kind
	Severity  noticekind.Severity
	ForAdmins bool
	Routes    []noticekind.Route
}

// SettingsPayload is the changed settings.
type SettingsPayload struct{ Settings *Settings }

// CreateNoticeChannelInput describes a new channel.
type CreateNoticeChannelInput struct {
	Type    noticekind.Route
	Name    string
	URL     string
	Cluster *bool
}

// UpdateNoticeChannelInput changes the fields that are set.
type UpdateNoticeChannelInput struct {
	ID      uuid.UUID
	Name    *string
	URL     *string
	Enabled *bool
}

// DeleteNoticeChannelInput names one.
type DeleteNoticeChannelInput struct{ ID uuid.UUID }

// TestNoticeChannelInput names one; nil: e-mail.
type TestNoticeChannelInput struct{ ID *uuid.UUID }

// ResendNoticeDeliveryInput names one.
type ResendNoticeDeliveryInput struct{ ID uuid.UUID }

// ChannelPayload is the changed channel.
type ChannelPayload struct{ Channel *ent.NoticeChannel }

// CreateChannelPayload is the new channel and, for a webhook, its secret.
type CreateChannelPayload struct {
	Channel *ent.NoticeChannel
	Secret  *string
}

// DeleteNoticeChannelPayload names the deleted channel.
type DeleteNoticeChannelPayload struct{ ID uuid.UUID }

// TestNoticeChannelPayload reports the result of a test.
type TestNoticeChannelPayload struct {
	Delivered bool
	Message   string
}

// DeliveryPayload is the changed delivery.
type DeliveryPayload struct{ Delivery *ent.NoticeDelivery }
