package object

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strings"

	"github.com/containerd/errdefs"
)

// errChecksum reports that the bytes do not match the checksum of the storage.
var errChecksum = errors.New("the bytes that arrived do not match the object's checksum")

// kinds are the checksums that S3 stores for whole objects, the strongest first.
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

// nvme is the CRC-64 polynomial of the NVM Express specification, bit-reversed.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

// sum is the expected checksum of an object and the hash of the bytes so far.
type sum struct {
	hash.Hash
	kind string // header of the checksum
	want []byte
}

// etagIsMD5 is the kind of checksum that has no header of its own.
const etagIsMD5 = "ETag"

// newSum returns an empty sum, or nil if the kind is unknown.
func newSum(kind string, want []byte) *sum {
	s := &sum{kind: kind, want: want}
	if kind == etagIsMD5 {
		s.Hash = md5.New()
	}
	for _, k := range kinds {
		if k.header == kind {
			s.Hash = k.make()
		}
	}
	if s.Hash == nil || len(want) != s.Size() {
		return nil
	}
	return s
}

// sumOf returns a checksum of the whole object from the headers of its download: one of those that
// S3 stores, or else the ETag if it is the MD5. It is not for objects that were sent in parts or
// encrypted with a key of the customer. It returns nil if there is none.
func sumOf(h http.Header, etag string) *sum {
	if h.Get("X-Amz-Checksum-Type") != "COMPOSITE" {
		for _, k := range kinds {
			text := h.Get(k.header)
			if want, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
				if s := newSum(k.header, want); s != nil {
					return s
				}
			}
		}
	}
	encrypted := strings.HasPrefix(h.Get("X-Amz-Server-Side-Encryption"), "aws:kms") ||
		h.Get("X-Amz-Server-Side-Encryption-Customer-Algorithm") != ""
	if want, err := hex.DecodeString(etag); err == nil && !encrypted {
		return newSum(etagIsMD5, want)
	}
	return nil
}

// halfway is the stored form of an unfinished sum.
type halfway struct {
	Kind        string
	Want, State []byte
}

// state returns the state of a sum, to continue with later; nil for a nil sum.
func (s *sum) state() (json.RawMessage, error) {
	if s == nil {
		return nil, nil
	}
	state, err := s.Hash.(encoding.BinaryMarshaler).MarshalBinary() // all hashes of the standard library implement it
	if err != nil {
		return nil, fmt.Errorf("store a checksum: %w", err)
	}
	return json.Marshal(halfway{s.kind, s.want, state})
}

// sumFrom restores a sum from its state.
func sumFrom(raw json.RawMessage) (*sum, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var h halfway
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("read a checksum: %w", err)
	}
	s := newSum(h.Kind, h.Want)
	if s == nil {
		return nil, fmt.Errorf("a checksum %q: %w", h.Kind, errdefs.ErrInvalidArgument)
	}
	if err := s.Hash.(encoding.BinaryUnmarshaler).UnmarshalBinary(h.State); err != nil {
		return nil, fmt.Errorf("read a checksum: %w", err)
	}
	return s, nil
}

func (s *sum) check() error {
	if s == nil || bytes.Equal(s.Sum(nil), s.want) {
		return nil
	}
	return errChecksum
}
