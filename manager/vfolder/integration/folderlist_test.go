package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/berthhq/berth/internal/access"
	"github.com/berthhq/berth/manager/clustertest"
	"github.com/berthhq/berth/manager/managertest"
)

// Folders are filtered by owner in the database, page by page.
func TestFoldersAreFilteredByWhoseTheyAre(t *testing.T) {
	c := clustertest.New(t, 0)
	ctx := c.System(t)
	proxy := c.Client.StorageProxy.Create().SetName("s1").SaveX(ctx)
	vol := c.Client.Volume.Create().SetName("main").SetProxy(proxy).SaveX(ctx)
	scope := func(kind string, holder uuid.UUID) uuid.UUID {
		q := c.Client.QuotaScope.Create().SetHolderID(holder).SetDomainID(c.A.ID).SetVolume(vol)
		if q.SetKind("user"); kind == "project" {
			q.SetKind("project")
		}
		return q.SaveX(ctx).ID
	}
	mine, theirs, projects := scope("user", c.A.Member.ID), scope("user", c.A.Loner.ID), scope("project", c.A.Project.ID)
	make := func(name string, scope uuid.UUID, user, project *uuid.UUID) uuid.UUID {
		return c.Client.Vfolder.Create().SetName(name).SetPath("p").SetStatus("ready").SetDomainID(c.A.ID).SetCreatorID(c.A.Member.ID).
			SetQuotaScopeID(scope).SetNillableOwnerID(user).SetNillableProjectID(project).SaveX(ctx).ID
	}
	share := func(folder uuid.UUID) {
		c.Client.VfolderShare.Create().SetVfolderID(folder).SetDomainID(c.A.ID).SetEmail(c.A.Member.Email).SetPermission(access.ReadOnly).
			SetUser(c.A.Member).SetInviter(c.A.Loner).SetStatus("accepted").ExecX(ctx)
	}
	for i := range 7 {
		make(fmt.Sprintf("mine-%d", i), mine, &c.A.Member.ID, nil)
	}
	share(make("lent", theirs, &c.A.Loner.ID, nil))
	make("hidden", theirs, &c.A.Loner.ID, nil)
	share(make("work", projects, nil, &c.A.Project.ID)) // shared, but still a project's folder

	type answer struct {
		Vfolders struct {
			TotalCount int
			PageInfo   struct {
				HasNextPage bool
				EndCursor   any
			}
			Edges []struct{ Node struct{ Name, Kind string } }
		}
	}
	const list = `query($w: VfolderWhereInput, $n: Int, $after: Cursor) { vfolders(first: $n, after: $after, where: $w, orderBy: [{field: NAME}]) {
		totalCount pageInfo { hasNextPage endCursor } edges { node { name kind } } } }`
	// pages reads a list two at a time: each page must have the same total.
	pages := func(as *managertest.Client, where managertest.Vars) (names, kinds []string) {
		v := managertest.Vars{"w": where, "n": 2}
		for {
			var got answer
			as.Must(t, list, v, &got)
			for _, e := range got.Vfolders.Edges {
				names, kinds = append(names, e.Node.Name), append(kinds, e.Node.Kind)
			}
			if !got.Vfolders.PageInfo.HasNextPage {
				if got.Vfolders.TotalCount != len(names) {
					t.Errorf("%v: %d are counted, %d are listed", where, got.Vfolders.TotalCount, len(names))
				}
				return names, slices.Compact(slices.Sorted(slices.Values(kinds)))
			}
			v["after"] = got.Vfolders.PageInfo.EndCursor
		}
	}
	all := []string{"mine-0", "mine-1", "mine-2", "mine-3", "mine-4", "mine-5", "mine-6"}
	member, admin := c.Member, c.Manager.As(t, c.A.Admin)
	for _, one := range []struct {
		name  string
		as    *managertest.Client
		where managertest.Vars
		want  []string
		kinds []string
	}{
		{"mine", member, managertest.Vars{"kind": "MINE"}, all, []string{"MINE"}},
		{"a project's", member, managertest.Vars{"kind": "PROJECT"}, []string{"work"}, []string{"PROJECT"}},
		{"shared with me", member, managertest.Vars{"kind": "SHARED"}, []string{"lent"}, []string{"SHARED"}},
		{"folders of others that are not shared", member, managertest.Vars{"kind": "OTHERS"}, nil, nil},
		{"not mine", member, managertest.Vars{"not": managertest.Vars{"kind": "MINE"}}, []string{"lent", "work"}, []string{"PROJECT", "SHARED"}},
		{"either of two kinds", member, managertest.Vars{"or": []managertest.Vars{{"kind": "SHARED"}, {"kind": "PROJECT"}}}, []string{"lent", "work"}, []string{"PROJECT", "SHARED"}},
		{"of a user who shares one", member, managertest.Vars{"ownerID": c.A.Loner.ID}, []string{"lent"}, []string{"SHARED"}},
		{"of a project", member, managertest.Vars{"projectID": c.A.Project.ID}, []string{"work"}, []string{"PROJECT"}},
		{"of no project", member, managertest.Vars{"projectID": c.A.Loner.ID}, nil, nil},
		{"by a part of the name too", member, managertest.Vars{"kind": "MINE", "nameContainsFold": "INE-3"}, []string{"mine-3"}, []string{"MINE"}},
		{"an underscore is not a wildcard", member, managertest.Vars{"kind": "MINE", "nameContainsFold": "mine_"}, nil, nil},
		{"of another state", member, managertest.Vars{"kind": "MINE", "statusIn": []string{"TRASH"}}, nil, nil},
		{"of another use", member, managertest.Vars{"kind": "MINE", "usageMode": "MODEL"}, nil, nil},
		{"an admin's view of users'", admin, managertest.Vars{"kind": "OTHERS"}, append([]string{"hidden", "lent"}, all...), []string{"OTHERS"}},
		{"shared with an admin, who can see all folders", admin, managertest.Vars{"kind": "SHARED"}, nil, nil},
		{"an admin's view of one user's", admin, managertest.Vars{"ownerIDIn": []uuid.UUID{c.A.Loner.ID}}, []string{"hidden", "lent"}, []string{"OTHERS"}},
	} {
		got, kinds := pages(one.as, one.where)
		if !slices.Equal(got, one.want) || !slices.Equal(kinds, one.kinds) {
			t.Errorf("%s: %v of kinds %v, want %v", one.name, got, kinds, one.want)
		}
	}
	if errs := member.Ask(t, list, managertest.Vars{"w": managertest.Vars{"kind": "mines"}}, nil); len(errs) == 0 {
		t.Error("a kind that is none is taken")
	}

	for _, one := range []struct {
		as   *managertest.Client
		want int
	}{{member, 2}, {admin, 0}} {
		var got struct{ QuotaScopes struct{ TotalCount int } }
		one.as.Must(t, `{ quotaScopes(mine: true) { totalCount } }`, nil, &got)
		if got.QuotaScopes.TotalCount != one.want {
			t.Errorf("%d quota scopes of one's own, want %d", got.QuotaScopes.TotalCount, one.want)
		}
	}
}
