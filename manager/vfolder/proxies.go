package vfolder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"
	"github.com/google/uuid"

	"github.com/berthhq/berth/ent"
	"github.com/berthhq/berth/ent/storageproxy"
	"github.com/berthhq/berth/ent/volume"
	"github.com/berthhq/berth/internal/cluster"
	"github.com/berthhq/berth/internal/id"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/report"
	"github.com/berthhq/berth/internal/viewer"
	"github.com/berthhq/berth/storage/storagepb"
)

// proxy is one connected storage proxy.
type proxy struct {
	rpc     storagepb.StorageClient
	objects storagepb.ObjectsClient
	url     string
	volumes map[string]storagepb.Volume_Health

	enrolment string // the join that issued its certificate
}

// Connected follows one storage proxy until its tunnel ends. It is the hub's OnPeer for
// storage.
func (s *Service) Connected(ctx context.Context, peer *cluster.Peer) {
	ctx = viewer.SystemContext(ctx)
	p := &proxy{rpc: storagepb.NewStorageClient(peer.Conn), objects: storagepb.NewObjectsClient(peer.Conn), enrolment: peer.Enrolment}
	s.Logger.Info("storage proxy connected", "proxy", peer.Name)
	for ctx.Err() == nil {
		again := s.nextAnnouncement()
		wctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(again, cancel)
		err := s.watch(wctx, peer.Name, p)
		stop()
		cancel()
		if again.Err() != nil {
			continue
		}
		if err != nil && ctx.Err() == nil {
			s.Logger.Warn("watch storage proxy", "proxy", peer.Name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	s.mu.Lock()
	if s.proxies[peer.Name] == p {
		delete(s.proxies, peer.Name)
	}
	s.mu.Unlock()
	s.Logger.Info("storage proxy disconnected", "proxy", peer.Name)
}

// AnnounceManagers restarts all watches, because a watch sends its proxy the list of managers.
func (s *Service) AnnounceManagers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announce != nil {
		s.announce()
		s.announced, s.announce = nil, nil
	}
}

// nextAnnouncement returns a context that ends with the next AnnounceManagers.
func (s *Service) nextAnnouncement() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announced == nil {
		s.announced, s.announce = context.WithCancel(context.Background())
	}
	return s.announced
}

func (s *Service) watch(ctx context.Context, name string, p *proxy) error {
	revoked, err := s.revoked(ctx)
	if err != nil {
		return err
	}
	stream, err := p.rpc.Watch(ctx, &storagepb.WatchRequest{
		Managers: s.Managers(), TicketKeys: s.Signer.PublicKeys(), RevokedUsers: revoked.users, RevokedFolders: revoked.folders,
	})
	for err == nil {
		var r *storagepb.Report
		if r, err = stream.Recv(); err == nil {
			err = s.record(ctx, name, p, r)
		}
	}
	return errgrpc.ToNative(err)
}

// record stores a proxy's report: its row and its volumes.
func (s *Service) record(ctx context.Context, name string, p *proxy, r *storagepb.Report) error {
	if r.Name != name {
		return fmt.Errorf("certificate of %s, report of %s: %w", name, r.Name, errdefs.ErrPermissionDenied)
	}
	// The proxy may have been removed from the cluster in the meantime.
	if err := s.Enrolments.Admit(ctx, cluster.RoleStorage, name, p.enrolment); err != nil {
		return err
	}
	err := s.Client.StorageProxy.Create().SetName(r.Name).SetVersion(r.Version).SetPublicURL(r.PublicUrl).
		SetLastSeenAt(time.Now()).OnConflictColumns(storageproxy.FieldName).
		Update(func(u *ent.StorageProxyUpsert) { u.UpdateVersion().UpdatePublicURL().UpdateLastSeenAt() }).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record storage proxy: %w", err)
	}
	id, err := s.Client.StorageProxy.Query().Where(storageproxy.Name(r.Name)).OnlyID(ctx)
	if err != nil {
		return err
	}
	names := map[string]storagepb.Volume_Health{}
	for _, v := range r.Volumes {
		names[v.Name] = v.Health
		if s.servedElsewhere(name, v) {
			continue
		}
		if err := s.recordVolume(ctx, id, v); err != nil {
			return err
		}
	}
	s.mu.Lock()
	var before map[string]storagepb.Volume_Health
	if s.proxies[name] == p { // otherwise it has connected again
		before = p.volumes
	}
	p.url, p.volumes = r.PublicUrl, names
	s.proxies[name] = p
	s.mu.Unlock()
	if recovered(before, names) {
		select {
		case s.back <- struct{}{}:
		default:
		}
	}
	return nil
}

// recovered reports whether the health of a volume has improved. Scopes are not reported while
// a plugin starts.
func recovered(before, now map[string]storagepb.Volume_Health) bool {
	for name, at := range now {
		if was, known := before[name]; !known || at < was {
			return true
		}
	}
	return false
}

// servedElsewhere reports whether another proxy takes precedence for a volume: one that serves it
// in better health, or in equal health with a smaller name. The row has the values of the proxy
// that takes precedence.
func (s *Service) servedElsewhere(name string, v *storagepb.Volume) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, p := range s.proxies {
		at, serves := p.volumes[v.Name]
		if other != name && serves && (at < v.Health || at == v.Health && other < name) {
			return true
		}
	}
	return false
}

func (s *Service) recordVolume(ctx context.Context, proxyID uuid.UUID, v *storagepb.Volume) error {
	capabilities := v.Capabilities
	if capabilities == nil {
		capabilities = []string{}
	}
	tx, err := s.Client.Tx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	fresh := id.New(id.Volume)
	c := tx.Volume.Create().SetID(fresh).SetName(v.Name).SetBackend(v.Backend).SetHealth(health[v.Health]).
		SetHealthMessage(v.Message).SetCapabilities(capabilities).SetTotalBytes(v.TotalBytes).SetUsedBytes(v.UsedBytes).
		SetNillableTotalInodes(v.TotalInodes).SetNillableUsedInodes(v.UsedInodes).SetElastic(v.Elastic).SetProxyID(proxyID)
	if v.Enforcement != "" { // otherwise not known yet
		c.SetEnforcement(v.Enforcement)
	}
	if v.Performance != nil {
		c.SetPerformance(performance(v.Performance))
	}
	err = c.OnConflictColumns(volume.FieldName).
		Update(func(u *ent.VolumeUpsert) {
			u.UpdateBackend().UpdateHealth().UpdateHealthMessage().UpdateTotalBytes().UpdateUsedBytes().
				UpdateTotalInodes().UpdateUsedInodes().UpdateElastic().UpdatePerformance().UpdateProxyID()
			if v.Enforcement != "" {
				u.UpdateEnforcement()
			}
			if len(capabilities) > 0 { // otherwise the plugin has not answered since the proxy started
				u.UpdateCapabilities()
			}
		}).Exec(ctx)
	if err != nil {
		return fmt.Errorf("record volume %s: %w", v.Name, err)
	}
	made, err := tx.Volume.Query().Where(volume.ID(fresh)).Exist(ctx)
	if err != nil {
		return err
	}
	if made { // this report created the volume
		if err := everybody(ctx, tx, fresh); err != nil {
			return fmt.Errorf("grant everyone access to volume %s: %w", v.Name, err)
		}
	}
	return tx.Commit()
}

func performance(p *storagepb.Performance) *report.Performance {
	return &report.Performance{
		WholeCluster: p.WholeCluster, At: time.UnixMilli(p.AsOfUnixMs).UTC(), WindowSeconds: float64(p.WindowMs) / 1000,
		ReadOpsPerSecond: p.ReadOpsPerSecond, WriteOpsPerSecond: p.WriteOpsPerSecond,
		ReadBytesPerSecond: p.ReadBytesPerSecond, WriteBytesPerSecond: p.WriteBytesPerSecond,
		ReadLatencyMicros: p.ReadLatencyUs, WriteLatencyMicros: p.WriteLatencyUs,
	}
}

var health = map[storagepb.Volume_Health]string{
	storagepb.Volume_HEALTHY:     "healthy",
	storagepb.Volume_DEGRADED:    "degraded",
	storagepb.Volume_UNAVAILABLE: "unavailable",
}

// reach returns a connected proxy that serves all of the volumes. It prefers one where they
// are healthy, and does not return one where a volume is unavailable.
func (s *Service) reach(volumes ...string) (*proxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *proxy
	worst := func(p *proxy) (h storagepb.Volume_Health, all bool) {
		for _, name := range volumes {
			at, serves := p.volumes[name]
			if !serves {
				return h, false
			}
			h = max(h, at)
		}
		return h, true
	}
	for _, name := range slices.Sorted(maps.Keys(s.proxies)) {
		p := s.proxies[name]
		h, all := worst(p)
		if !all {
			continue
		}
		if best == nil {
			best = p
		} else if was, _ := worst(best); h < was {
			best = p
		}
	}
	if best == nil {
		return nil, problem.Unavailable("no storage proxy serves volume %s now", strings.Join(volumes, " and "))
	}
	if h, _ := worst(best); h == storagepb.Volume_UNAVAILABLE {
		return nil, problem.Unavailable("volume %s is unavailable now", strings.Join(volumes, " or "))
	}
	return best, nil
}

// heartbeatTimeout is how long after the last report a proxy's volumes are marked unavailable.
// A proxy reports every 10 s.
const heartbeatTimeout = 30 * time.Second

// checkEvery is the pause between two checks, and before the first one: without a manager, no
// proxy could report, and all proxies reconnect within 10 s.
const checkEvery = 15 * time.Second

// markUnresponsive marks the volumes of proxies without a heartbeat as unavailable, with the
// reason. The next report of a proxy that serves them replaces this.
func (s *Service) markUnresponsive(ctx context.Context) error {
	lost, err := s.Client.Volume.Query().
		Where(volume.HealthNEQ("unavailable"), volume.HasProxyWith(storageproxy.LastSeenAtLT(time.Now().Add(-heartbeatTimeout)))).
		WithProxy().All(ctx)
	if err != nil {
		return fmt.Errorf("find unresponsive storage proxies: %w", err)
	}
	for _, v := range lost {
		p := v.Edges.Proxy
		why := fmt.Sprintf("its storage proxy %s has not sent a heartbeat since %s", p.Name, p.LastSeenAt.UTC().Format(time.RFC3339))
		n, err := s.Client.Volume.Update().
			Where(volume.ID(v.ID), volume.HasProxyWith(storageproxy.ID(p.ID), storageproxy.LastSeenAt(p.LastSeenAt))).
			SetHealth("unavailable").SetHealthMessage(why).Save(ctx)
		if err != nil {
			return fmt.Errorf("mark volume %s unavailable: %w", v.Name, err)
		}
		if n > 0 {
			s.Logger.Warn("volume unavailable", "volume", v.Name, "reason", why)
		}
	}
	return nil
}

// ProxyURLs returns the public base URLs of all storage proxies, including those that are not
// connected now.
func (s *Service) ProxyURLs(ctx context.Context) []string {
	urls, err := s.Client.StorageProxy.Query().Select(storageproxy.FieldPublicURL).Strings(viewer.SystemContext(ctx))
	if err != nil {
		s.Logger.WarnContext(ctx, "list storage proxies", "error", err)
	}
	return urls
}
