package graph

import (
	"context"
	"sync"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	entnotice "github.com/berthhq/berth/ent/notice"
	"github.com/berthhq/berth/ent/noticechannel"
	"github.com/berthhq/berth/ent/noticedelivery"
	"github.com/berthhq/berth/ent/predicate"
	"github.com/berthhq/berth/graph/exec"
	"github.com/berthhq/berth/internal/event"
	"github.com/berthhq/berth/internal/noticekind"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/manager/notice"
	"github.com/berthhq/berth/manager/notice/announcement"
)

type (
	noticeResolver        struct{ *Resolver }
	noticeChannelResolver struct{ *Resolver }
)

// Notice resolves the texts of notices.
func (r *Resolver) Notice() exec.NoticeResolver { return noticeResolver{r} }

// NoticeChannel resolves whose channels are.
func (r *Resolver) NoticeChannel() exec.NoticeChannelResolver { return noticeChannelResolver{r} }

func (noticeResolver) Text(_ context.Context, n *ent.Notice) (string, error) {
	return noticekind.Text(noticekind.English, n.Kind, n.Parameters, n.Count), nil
}

func (noticeChannelResolver) Cluster(_ context.Context, c *ent.NoticeChannel) (bool, error) {
	return c.UserID == nil, nil
}

func (r queryResolver) Notices(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.NoticeOrder, where *ent.NoticeWhereInput) (*ent.NoticeConnection, error) {
	return r.Client.Notice.Query().Paginate(ctx, after, first, before, last, ent.WithNoticeOrder(orderBy), ent.WithNoticeFilter(where.Filter))
}

func (r queryResolver) UnreadNotices(ctx context.Context) (int, error) {
	return r.Resolver.Notices.Unread(ctx)
}

func (r queryResolver) NoticeSettings(ctx context.Context) (*notice.Settings, error) {
	return r.Resolver.Notices.Settings(ctx)
}

func (r queryResolver) NoticeChannels(ctx context.Context, cluster *bool) ([]*ent.NoticeChannel, error) {
	whose := noticechannel.UserID(viewer.From(ctx).User)
	if cluster != nil && *cluster {
		whose = noticechannel.UserIDIsNil()
	}
	return r.Client.NoticeChannel.Query().Where(whose).Order(noticechannel.ByCreatedAt()).All(ctx)
}

func (r queryResolver) NoticeDeliveries(ctx context.Context, cluster *bool, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.NoticeDeliveryOrder, where *ent.NoticeDeliveryWhereInput) (*ent.NoticeDeliveryConnection, error) {
	whose := noticedelivery.UserID(viewer.From(ctx).User)
	if cluster != nil && *cluster {
		whose = noticedelivery.UserIDIsNil()
	}
	return r.Client.NoticeDelivery.Query().Where(whose).Paginate(ctx, after, first, before, last, ent.WithNoticeDeliveryOrder(orderBy), ent.WithNoticeDeliveryFilter(where.Filter))
}

func (r mutationResolver) MarkNoticesRead(ctx context.Context, input notice.MarkNoticesReadInput) (*notice.MarkNoticesReadPayload, error) {
	return r.Notices.MarkNoticesRead(ctx, input)
}

func (r mutationResolver) SetNoticeSettings(ctx context.Context, input notice.SetNoticeSettingsInput) (*notice.SettingsPayload, error) {
	return r.Notices.SetNoticeSettings(ctx, input)
}

func (r mutationResolver) CreateNoticeChannel(ctx context.Context, input notice.CreateNoticeChannelInput) (*notice.CreateChannelPayload, error) {
	return r.Notices.CreateNoticeChannel(ctx, input)
}

func (r mutationResolver) UpdateNoticeChannel(ctx context.Context, input notice.UpdateNoticeChannelInput) (*notice.ChannelPayload, error) {
	return r.Notices.UpdateNoticeChannel(ctx, input)
}

func (r mutationResolver) DeleteNoticeChannel(ctx context.Context, input notice.DeleteNoticeChannelInput) (*notice.DeleteNoticeChannelPayload, error) {
	return r.Notices.DeleteNoticeChannel(ctx, input)
}

func (r mutationResolver) TestNoticeChannel(ctx context.Context, input notice.TestNoticeChannelInput) (*notice.TestNoticeChannelPayload, error) {
	return r.Notices.TestNoticeChannel(ctx, input)
}

func (r mutationResolver) ResendNoticeDelivery(ctx context.Context, input notice.ResendNoticeDeliveryInput) (*notice.DeliveryPayload, error) {
	return r.Notices.ResendNoticeDelivery(ctx, input)
}

// NoticeAdded sends the viewer's notices that are stored from now on, each once. An event names the person, so that only their
// subscriptions read.
func (r subscriptionResolver) NoticeAdded(ctx context.Context) (<-chan *ent.Notice, error) {
	me := viewer.From(ctx).User
	var mu sync.Mutex
	var sent uuid.UUID
	begun := now()
	newer := func(ctx context.Context) ([]*ent.Notice, error) {
		mu.Lock()
		defer mu.Unlock()
		where := []predicate.Notice{entnotice.CreatedAtGTE(begun)}
		if sent != uuid.Nil {
			where = []predicate.Notice{entnotice.IDGT(sent)}
		}
		q, err := r.Client.Notice.Query().Where(where...).Order(entnotice.ByID(sql.OrderAsc())).Limit(maxFeed).CollectFields(ctx, "Notice", "Node")
		if err != nil {
			return nil, err
		}
		list, err := q.All(ctx)
		if len(list) > 0 {
			sent = list[len(list)-1].ID
		}
		return list, err
	}
	return follow(ctx, r.Resolver, feed[*ent.Notice]{
		topic: event.Notice, id: &me, missed: newer,
		first: func(context.Context) ([]*ent.Notice, error) { return nil, nil },
		read:  func(ctx context.Context, _ []uuid.UUID) ([]*ent.Notice, error) { return newer(ctx) },
	})
}

func (r queryResolver) CurrentAnnouncements(ctx context.Context) ([]*ent.Announcement, error) {
	return r.Resolver.Announcements.Current(ctx)
}

func (r queryResolver) Announcements(ctx context.Context, first *int, after *ent.Cursor, last *int, before *ent.Cursor, orderBy []*ent.AnnouncementOrder, where *ent.AnnouncementWhereInput) (*ent.AnnouncementConnection, error) {
	return r.Client.Announcement.Query().Paginate(ctx, after, first, before, last, ent.WithAnnouncementOrder(orderBy), ent.WithAnnouncementFilter(where.Filter))
}

func (r mutationResolver) CreateAnnouncement(ctx context.Context, input announcement.CreateAnnouncementInput) (*announcement.AnnouncementPayload, error) {
	return r.Announcements.CreateAnnouncement(ctx, input)
}

func (r mutationResolver) UpdateAnnouncement(ctx context.Context, input announcement.UpdateAnnouncementInput) (*announcement.AnnouncementPayload, error) {
	return r.Announcements.UpdateAnnouncement(ctx, input)
}

func (r mutationResolver) DeleteAnnouncement(ctx context.Context, input announcement.DeleteAnnouncementInput) (*announcement.DeleteAnnouncementPayload, error) {
	return r.Announcements.DeleteAnnouncement(ctx, input)
}

func (r mutationResolver) DismissAnnouncement(ctx context.Context, input announcement.DismissAnnouncementInput) (*announcement.DismissAnnouncementPayload, error) {
	return r.Announcements.DismissAnnouncement(ctx, input)
}
