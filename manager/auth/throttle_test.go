package auth_test

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berthhq/berth/manager/auth"
	"github.com/berthhq/berth/manager/identity/identitytest"
)

func TestTwentyWrongPasswords(t *testing.T) {
	url := redisURL(t)
	for name, redis := range map[string]string{"with Redis": url, "without Redis": ""} {
		t.Run(name, func(t *testing.T) {
			w := identitytest.New(t)
			m := start(t, w.Client, redis, nil)
			if m.redis != nil {
				m.redis.FlushAll(t.Context())
			}
			for i := range 20 {
				resp, _ := m.tryLogin(t, w.A.Member.Email, "wrong password")
				want := http.StatusUnauthorized
				if i >= 10 {
					want = http.StatusTooManyRequests
					if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || s < 1 || s > 900 {
						t.Errorf("Retry-After is %q", resp.Header.Get("Retry-After"))
					}
				}
				status(t, resp, want)
			}
			resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password)
			status(t, resp, http.StatusTooManyRequests)
			m.logIn(t, w.A.Lead.Email) // another user at the same address still can
			for i := range 20 {
				resp, _ := m.tryLogin(t, "nobody@example.org", "wrong password")
				if want := resp.StatusCode == http.StatusTooManyRequests; want != (i >= 10) {
					t.Errorf("attempt %d on an unknown user gets %d: it can be distinguished", i, resp.StatusCode)
				}
			}
		})
	}
}

func TestManagersCountTogether(t *testing.T) {
	w := identitytest.New(t)
	url := redisURL(t)
	one, other := start(t, w.Client, url, nil), start(t, w.Client, url, nil)
	for i := range 10 {
		m := []*manager{one, other}[i%2]
		resp, _ := m.tryLogin(t, w.A.Member.Email, "wrong password")
		status(t, resp, http.StatusUnauthorized)
	}
	for _, m := range []*manager{one, other} {
		resp, _ := m.tryLogin(t, w.A.Member.Email, "wrong password")
		status(t, resp, http.StatusTooManyRequests)
	}
	one.redis.FlushAll(t.Context())
	refused := 0
	for range 12 {
		if resp, _ := one.tryLogin(t, w.A.Member.Email, "wrong password"); resp.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 6 {
		t.Errorf("after Redis was emptied only %d of 12 were refused", refused)
	}
}

func TestManyAtOnceDoNotSlipThrough(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", nil)
	var tried atomic.Int32
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if resp, _ := m.tryLogin(t, w.A.Member.Email, "wrong password"); resp.StatusCode == http.StatusUnauthorized {
				tried.Add(1)
			}
		})
	}
	wg.Wait()
	if n := tried.Load(); n != 10 {
		t.Errorf("%d passwords were tried, want 10", n)
	}
}

func TestOneAddressTriesManyUsers(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, "", func(c *auth.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	last := 0
	for i := range 51 {
		// hosts of one IPv6 network count together
		from := "2001:db8::" + strconv.FormatInt(int64(i+1), 16)
		resp, _ := m.tryLogin(t, "user"+strconv.Itoa(i)+"@example.org", "wrong password", "X-Forwarded-For", from)
		last = resp.StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the 51st user tried from one network gets %d", last)
	}
	resp, _ := m.tryLogin(t, w.A.Member.Email, identitytest.Password, "X-Forwarded-For", "192.0.2.1")
	status(t, resp, http.StatusOK)
}

func TestSuccessForgetsFailures(t *testing.T) {
	w := identitytest.New(t)
	m := start(t, w.Client, redisURL(t), nil)
	for range 3 {
		for range 9 {
			resp, _ := m.tryLogin(t, w.A.Member.Email, "wrong password")
			status(t, resp, http.StatusUnauthorized)
		}
		m.logIn(t, w.A.Member.Email)
	}
}
