package client

import "context"

// Notices lists the user's notices, the newest first; unread: only those that they have not read.
func (c *Client) Notices(ctx context.Context, unread bool, limit int) ([]Notice, error) {
	where := map[string]any{}
	if unread {
		where["readAtIsNil"] = true
	}
	return collect(limit, func(first *int, after string) (*queryNoticesNoticesNoticeConnection, error) {
		out, err := queryNotices(ctx, c, first, after, where)
		return &out.Notices, err
	})
}

// MarkNoticesRead marks notices as read; none: all. It returns the number that were unread.
func (c *Client) MarkNoticesRead(ctx context.Context, in MarkNoticesReadInput) (int, error) {
	out, err := markNoticesRead(ctx, c, in)
	return out.Payload.Marked, err
}

// NoticeSettings returns how notices reach the user.
func (c *Client) NoticeSettings(ctx context.Context) (*NoticeSettings, error) {
	out, err := queryNoticeSettings(ctx, c)
	return &out.NoticeSettings, err
}

// SetNoticeSettings changes how notices reach the user.
func (c *Client) SetNoticeSettings(ctx context.Context, in SetNoticeSettingsInput) (*NoticeSettings, error) {
	out, err := setNoticeSettings(ctx, c, in)
	return &out.Payload.Settings, err
}

// NoticeChannels lists the channels of the user, or of the cluster.
func (c *Client) NoticeChannels(ctx context.Context, cluster bool) ([]NoticeChannel, error) {
	out, err := queryNoticeChannels(ctx, c, cluster)
	return out.NoticeChannels, err
}

// CreateNoticeChannel adds a channel, and returns the secret that signs the requests of a webhook.
func (c *Client) CreateNoticeChannel(ctx context.Context, in CreateNoticeChannelInput) (channel *NoticeChannel, secret *string, err error) {
	out, err := createNoticeChannel(ctx, c, in)
	return &out.Payload.Channel, out.Payload.Secret, err
}

// UpdateNoticeChannel changes a channel.
func (c *Client) UpdateNoticeChannel(ctx context.Context, in UpdateNoticeChannelInput) (*NoticeChannel, error) {
	out, err := updateNoticeChannel(ctx, c, in)
	return &out.Payload.Channel, err
}

// DeleteNoticeChannel deletes a channel.
func (c *Client) DeleteNoticeChannel(ctx context.Context, id string) error {
	_, err := deleteNoticeChannel(ctx, c, DeleteNoticeChannelInput{ID: id})
	return err
}

// TestNoticeChannel sends a test at once. It returns why the test was not delivered; "": it was.
func (c *Client) TestNoticeChannel(ctx context.Context, in TestNoticeChannelInput) (why string, err error) {
	out, err := testNoticeChannel(ctx, c, in)
	return out.Payload.Message, err
}

// NoticeDeliveries lists deliveries of the user's notices, or of the cluster's channels, the newest first. Without a status, it lists all.
func (c *Client) NoticeDeliveries(ctx context.Context, cluster bool, status string, limit int) ([]NoticeDelivery, error) {
	where := map[string]any{}
	if status != "" {
		where["status"] = status
	}
	return collect(limit, func(first *int, after string) (*queryNoticeDeliveriesNoticeDeliveriesNoticeDeliveryConnection, error) {
		out, err := queryNoticeDeliveries(ctx, c, cluster, first, after, where)
		return &out.NoticeDeliveries, err
	})
}

// ResendNoticeDelivery sends a dead or dropped delivery again.
func (c *Client) ResendNoticeDelivery(ctx context.Context, id string) (*NoticeDelivery, error) {
	out, err := resendNoticeDelivery(ctx, c, ResendNoticeDeliveryInput{ID: id})
	return &out.Payload.Delivery, err
}

// CurrentAnnouncements lists the announcements to the user that are shown now.
func (c *Client) CurrentAnnouncements(ctx context.Context) ([]Announcement, error) {
	out, err := queryCurrentAnnouncements(ctx, c)
	return out.CurrentAnnouncements, err
}

// Announcements lists announcements, the newest first: all of them for superadmins.
func (c *Client) Announcements(ctx context.Context) ([]Announcement, error) {
	return collect(0, func(first *int, after string) (*queryAnnouncementsAnnouncementsAnnouncementConnection, error) {
		out, err := queryAnnouncements(ctx, c, first, after)
		return &out.Announcements, err
	})
}

// CreateAnnouncement shows a text to people.
func (c *Client) CreateAnnouncement(ctx context.Context, in CreateAnnouncementInput) (*Announcement, error) {
	out, err := createAnnouncement(ctx, c, in)
	return &out.Payload.Announcement, err
}

// DeleteAnnouncement deletes an announcement.
func (c *Client) DeleteAnnouncement(ctx context.Context, id string) error {
	_, err := deleteAnnouncement(ctx, c, DeleteAnnouncementInput{ID: id})
	return err
}

// UpdateAnnouncement changes an announcement; its audience cannot change.
func (c *Client) UpdateAnnouncement(ctx context.Context, in UpdateAnnouncementInput) (*Announcement, error) {
	out, err := updateAnnouncement(ctx, c, in)
	return &out.Payload.Announcement, err
}

// DismissAnnouncement hides an announcement from the user.
func (c *Client) DismissAnnouncement(ctx context.Context, id string) error {
	_, err := dismissAnnouncement(ctx, c, DismissAnnouncementInput{ID: id})
	return err
}
