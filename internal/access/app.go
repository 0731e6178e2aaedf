package access

// AppAudience selects who can open a shared app, in addition to those who can enter its session.
type AppAudience string

// The audiences.
const (
	AppProject  AppAudience = "project"  // the members of the session's project
	AppEveryone AppAudience = "everyone" // every user who is logged in
	AppPublic   AppAudience = "public"   // everyone, without a login
)

// AppAudiences lists all, the smallest first.
func AppAudiences() []AppAudience { return []AppAudience{AppProject, AppEveryone, AppPublic} }

// Values are the values of the column, for ent.
func (AppAudience) Values() []string {
	return []string{string(AppProject), string(AppEveryone), string(AppPublic)}
}
