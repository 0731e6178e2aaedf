package object

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"
)

// errSpoiled are bytes that do not add up to what their storage says of them.
var errSpoiled = errors.New("the bytes that arrived do not add up to the object's checksum")

// kinds are the checksums that S3 keeps of whole objects, the strongest first.
var kinds = []struct {
	header string
	make   func() hash.Hash
}{
	{"X-Amz-Checksum-Sha256", sha256.New},
	{"X-Amz-Checksum-Sha1", sha1.New},
	{"X-Amz-Checksum-Crc64nvme", func() hash.Hash { return crc64.New(nvme) }},
	{"X-Amz-Checksum-Crc32c", func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }},
	{"X-Amz-Checksum-Crc32", func() hash.Hash { return crc32.NewIEEE() }},
}

// nvme is the CRC-64 of the NVM Express specification, its polynomial bit-reversed.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// sum is what the bytes of an object must add up to.
type sum struct {
	hash.Hash
	want []byte
}

// sumOf finds a checksum of the whole object in the headers of its download: one of
// those that S3 keeps, or else the ETag where that is the MD5, which it is not for what
// was sent in parts or encrypted with a key of the customer. Nil when there is none.
func sumOf(h http.Header, etag string) *sum {
	if h.Get("X-Amz-Checksum-Type") != "COMPOSITE" {
		for _, k := range kinds {
			text := h.Get(k.header)
			if want, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
				if s := (&sum{k.make(), want}); len(want) == s.Size() {
					return s
				}
			}
		}
	}
	encrypted := strings.HasPrefix(h.Get("X-Amz-Server-Side-Encryption"), "aws:kms") ||
		h.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") != ""
	if want, err := hex.DecodeString(etag); err == nil && len(want) == md5.Size && !encrypted {
		return &sum{md5.New(), want}
	}
	return nil
}

func (s *sum) check() error {
	if s == nil || bytes.Equal(s.Sum(nil), s.want) {
		return nil
	}
	return errSpoiled
}
