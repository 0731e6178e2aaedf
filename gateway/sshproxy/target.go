package sshproxy

import (
	"regexp"
	"strings"
)

// Target is the kernel that the user name of a client selects: [ACCOUNT+]SESSION[.KERNEL].
type Target struct {
	Session string // name or ID
	Kernel  string // main, sub1, sub2 and so on; "" for the main kernel
}

var kernelName = regexp.MustCompile(`^(main|sub[1-9][0-9]{0,5})$`)

// parseTarget parses a user name. The account is an e-mail address; it is needed only for a key
// that several accounts have. Names of sessions have no plus sign, and can have dots.
func parseTarget(user string) (account string, t Target) {
	if at := strings.LastIndexByte(user, '+'); at >= 0 {
		account, user = user[:at], user[at+1:]
	}
	t.Session = user
	if at := strings.LastIndexByte(user, '.'); at > 0 && kernelName.MatchString(user[at+1:]) {
		t.Session, t.Kernel = user[:at], user[at+1:]
	}
	return account, t
}
