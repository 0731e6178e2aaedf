package access

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// AppAudience is who can open a shared app, beside the people who can enter its session.
type AppAudience string

// The audiences.
const (
	AppProject  AppAudience = "project"  // the members of the session's project
	AppEveryone AppAudience = "everyone" // every user who is logged in
	AppPublic   AppAudience = "public"   // everybody, without a login
)

// AppAudiences lists all, the smallest first.
func AppAudiences() []AppAudience { return []AppAudience{AppProject, AppEveryone, AppPublic} }

// Values are the values of the column, for ent.
func (AppAudience) Values() []string {
	return []string{string(AppProject), string(AppEveryone), string(AppPublic)}
}

// MarshalGQL implements graphql.Marshaler. The API has enum values in capitals.
func (a AppAudience) MarshalGQL(w io.Writer) {
	_, _ = io.WriteString(w, strconv.Quote(strings.ToUpper(string(a))))
}

// UnmarshalGQL implements graphql.Unmarshaler.
func (a *AppAudience) UnmarshalGQL(v any) error {
	s, _ := v.(string)
	got := AppAudience(strings.ToLower(s))
	if s != strings.ToUpper(s) || !slices.Contains(AppAudiences(), got) {
		return fmt.Errorf("%v is not an audience of an app", v)
	}
	*a = got
	return nil
}
