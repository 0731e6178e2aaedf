package nfsmount

import (
	"errors"
	"strings"
	"testing"
)

const table = `21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 21 0:50 / /data rw,relatime shared:1 - nfs4 filer:/export/a\040b rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,local_lock=none,addr=10.0.0.1
41 21 0:51 / /old\040one rw - nfs filer:/old rw,vers=3,soft,nolock,nocto,local_lock=all,addr=10.0.0.1
42 21 0:52 / /over rw - nfs4 filer:/x rw,vers=4.1
43 42 0:53 / /over rw - tmpfs none rw
`

func TestFind(t *testing.T) {
	m, err := find(strings.NewReader(table), "/data")
	if err != nil || m.Server != "filer:/export/a b" || m.Version() != "4.2" || len(m.Warnings()) != 0 || m.Shown()["wsize"] != "1048576" {
		t.Errorf("%+v, doubts %q, %v", m, m.Warnings(), err)
	}
	m, err = find(strings.NewReader(table), "/old one")
	if err != nil || len(m.Warnings()) != 3 {
		t.Errorf("%+v, doubts %q, %v", m, m.Warnings(), err)
	}
	for _, path := range []string{"/", "/over", "/none"} {
		if m, err := find(strings.NewReader(table), path); !errors.Is(err, ErrNotNFS) {
			t.Errorf("%s: %+v, %v", path, m, err)
		}
	}
}
