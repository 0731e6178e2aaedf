package recipe

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
)

var refForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+@-]*$`)

const (
	maxAddress = 1024
	maxRef     = 200
)

// CheckGit returns an error unless an address, a branch, tag or commit, and a directory can be fetched by a server:
// only https without a user name or a password, and no address of this machine.
func CheckGit(address, ref, directory string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxAddress || strings.ContainsAny(address, " \t\r\n\x00"):
		return bad("the address of the repository is longer than %d characters or has a space", maxAddress)
	case err != nil:
		return bad("%.200q is not an address such as https://example.org/repository.git", address)
	case u.Scheme != "https" || u.Hostname() == "":
		return bad("the address %.200q of the repository does not begin with https:// and a host", u.Redacted())
	case u.User != nil:
		return bad("the address of the repository has a user name or a password: put the token into a secret")
	case u.RawQuery != "" || u.Fragment != "":
		return bad("the address of the repository has a query or a fragment: use ref and directory")
	case strings.EqualFold(u.Hostname(), "localhost"):
		return bad("the address of the repository is one of the machine itself")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast()) {
		return bad("the address %s of the repository is one of the machine itself", a)
	}
	if ref != "" && (len(ref) > maxRef || !refForm.MatchString(ref) || strings.Contains(ref, "..")) {
		return bad("ref %.100q is not the name of a branch or tag, or a commit", ref)
	}
	if clean := path.Clean(directory); directory != "" && (path.IsAbs(directory) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(directory, "\\\x00\r\n")) {
		return bad("directory %.100q is not inside the repository", directory)
	}
	return nil
}
