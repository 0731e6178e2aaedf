package object

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"testing"
)

func TestSums(t *testing.T) {
	const text = "123456789" // whose sums everyone publishes
	b64 := func(digits string) string {
		raw, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		return base64.StdEncoding.EncodeToString(raw)
	}
	const md5OfText = "25f9e794323b453885f5181f1b624d0b"
	for name, c := range map[string]struct {
		header map[string]string
		etag   string
		there  bool // whether the object has a checksum to compare with
	}{
		"crc64nvme":          {map[string]string{"X-Amz-Checksum-Crc64nvme": b64("ae8b14860a799888")}, "x-1", true},
		"crc32c":             {map[string]string{"X-Amz-Checksum-Crc32c": b64("e3069283")}, "x-1", true},
		"crc32":              {map[string]string{"X-Amz-Checksum-Crc32": b64("cbf43926")}, "x-1", true},
		"sha1":               {map[string]string{"X-Amz-Checksum-Sha1": b64("f7c3bc1d808e04732adf679965ccc34ca7ae3441")}, "x-1", true},
		"sha256":             {map[string]string{"X-Amz-Checksum-Sha256": b64("15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225")}, "x-1", true},
		"md5":                {nil, md5OfText, true},
		"of parts":           {map[string]string{"X-Amz-Checksum-Crc32c": b64("00000000"), "X-Amz-Checksum-Type": "COMPOSITE"}, "x-2", false},
		"of parts, numbered": {map[string]string{"X-Amz-Checksum-Crc32c": b64("00000000") + "-2"}, "x-2", false},
		"encrypted":          {map[string]string{"X-Amz-Server-Side-Encryption": "aws:kms"}, "00f9e794323b453885f5181f1b624d0b", false},
		"nothing":            {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range c.header {
				h.Set(k, v)
			}
			s := sumOf(h, c.etag)
			if (s != nil) != c.there {
				t.Fatalf("found %v", s)
			}
			if s != nil {
				s.Write([]byte(text[:4]))
			}
			halfway, err := s.state()
			if err != nil {
				t.Fatal(err)
			}
			if s, err = sumFrom(halfway); err != nil || (s != nil) != c.there {
				t.Fatalf("continues with %v, %v", s, err)
			}
			if s != nil {
				s.Write([]byte(text[4:]))
			}
			if err := s.check(); err != nil {
				t.Error(err)
			}
			if s = sumOf(h, c.etag); s != nil {
				s.Write([]byte(text + "!"))
				if s.check() == nil {
					t.Error("other bytes are taken for the object's")
				}
			}
		})
	}
}

func TestSumsThatCannotGoOn(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON": "x", "no such kind": `{"Kind":"X-Sum","Want":"AAAA"}`, "too short": `{"Kind":"ETag","Want":"AAAA"}`,
		"no state": `{"Kind":"ETag","Want":"AAAAAAAAAAAAAAAAAAAAAA=="}`,
	} {
		if s, err := sumFrom([]byte(raw)); err == nil {
			t.Errorf("%s: %v", name, s)
		}
	}
}
