package objectstorage

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/berthhq/berth/internal/folderpath"
	"github.com/berthhq/berth/internal/naming"
	"github.com/berthhq/berth/internal/problem"
)

const (
	maxCredential = 1024
	maxKey        = 1024 // bytes, the limit of S3
)

var (
	bucketRule = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionRule = regexp.MustCompile(`^[a-zA-Z0-9-]{0,64}$`)
)

// cleanEndpoint accepts scheme, host and port only.
func cleanEndpoint(s string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", problem.Invalid("endpoint", format, args...)
	}
	u, err := url.Parse(strings.TrimSuffix(strings.TrimSpace(s), "/"))
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return bad("is written https://HOST or https://HOST:PORT")
	case u.User != nil:
		return bad("may hold no credentials: they have fields of their own")
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return bad("has nothing after host and port: the bucket has a field of its own")
	}
	host := strings.ToLower(u.Hostname())
	if !naming.Host(strings.TrimSuffix(host, ".")) {
		return bad("has no host name or address")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", problem.Invalid("endpoint", "has no valid port").WithLimit("1..65535")
		}
		return u.Scheme + "://" + net.JoinHostPort(host, port), nil
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host, nil
}

func cleanRegion(s string) (string, error) {
	if !regionRule.MatchString(s) {
		return "", problem.Invalid("region", "must have letters, digits and dashes, such as eu-central-1")
	}
	return s, nil
}

func cleanBucket(s string) (string, error) {
	if !bucketRule.MatchString(s) || strings.Contains(s, "..") || net.ParseIP(s) != nil {
		return "", problem.Invalid("bucket", "must have 3 to 63 lower-case letters, digits, dots and dashes").WithLimit("3..63")
	}
	return s, nil
}

// cleanPrefix returns "" or a prefix that ends in a slash.
func cleanPrefix(field, s string) (string, error) {
	s = strings.Trim(s, "/")
	if s == "" {
		return "", nil
	}
	if len(s) >= maxKey {
		return "", problem.Invalid(field, "has %d bytes", len(s)).WithLimit(fmt.Sprint(maxKey - 1))
	}
	if why := folderpath.NewFault(s); why != "" {
		return "", problem.Invalid(field, "%s", why)
	}
	return s + "/", nil
}
