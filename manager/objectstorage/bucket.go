package objectstorage

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/berthhq/berth/ent"
	entstorage "github.com/berthhq/berth/ent/objectstorage"
	"github.com/berthhq/berth/internal/egress"
	"github.com/berthhq/berth/internal/problem"
	"github.com/berthhq/berth/internal/seal"
	"github.com/berthhq/berth/storage/storagepb"
)

// way is the transport to object storages: to the Internet, and to hosts that the configuration
// allows.
type way struct{ *http.Transport }

func newWay(policy *egress.Policy) *way {
	t := policy.Transport(egress.Public)
	t.ResponseHeaderTimeout = 30 * time.Second
	return &way{t}
}

// until ends every request with ctx, because some calls of the library take no context.
type until struct {
	ctx context.Context
	*way
}

func (u until) RoundTrip(r *http.Request) (*http.Response, error) {
	return u.way.RoundTrip(r.WithContext(u.ctx))
}

// bucket is a connection to an object storage, valid as long as a context.
type bucket struct {
	core   minio.Core
	name   string
	nobody bool // requests have no credentials
}

// Number of attempts before an error of a busy or unreachable storage is returned. The library
// waits up to a second in between.
const (
	once            = 1
	whilePeopleWait = 3
	inTask          = 5
)

// open returns the bucket of a row.
func (s *Service) open(ctx context.Context, row *ent.ObjectStorage, tries int) (*bucket, error) {
	b := &bucket{name: row.Bucket, nobody: row.AccessKeyID == ""}
	creds := credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if !b.nobody {
		secret, err := s.keys.Open(seal.StorageSecret, row.SecretSealed)
		if err != nil {
			return nil, err
		}
		creds = credentials.NewStaticV4(row.AccessKeyID, string(secret), "")
	}
	u, err := url.Parse(row.Endpoint)
	if err != nil {
		return nil, err
	}
	lookup := minio.BucketLookupPath
	if row.Addressing == entstorage.AddressingVirtual {
		lookup = minio.BucketLookupDNS
	}
	b.core.Client, err = minio.New(u.Host, &minio.Options{
		Creds: creds, Secure: u.Scheme == "https", Region: row.Region, BucketLookup: lookup,
		Transport: until{ctx, s.way}, MaxRetries: tries,
	})
	if err != nil {
		return nil, problem.Invalid("endpoint", "%v", err)
	}
	return b, nil
}

// object is an object under a key.
type object struct {
	key      string
	size     int64
	etag     string
	modified time.Time
}

func objectOf(o minio.ObjectInfo) object {
	return object{o.Key, o.Size, strings.Trim(o.ETag, `"`), o.LastModified}
}

// list returns a page of the objects whose keys begin with a prefix, after a key.
func (b *bucket) list(prefix, after string, most int) (page []object, more bool, err error) {
	r, err := b.core.ListObjectsV2(b.name, prefix, after, "", "", most)
	if err != nil {
		return nil, false, explain(err)
	}
	for _, o := range r.Contents {
		page = append(page, objectOf(o))
	}
	return page, r.IsTruncated && len(page) > 0, nil
}

// stat returns an object, or nil if it does not exist.
func (b *bucket) stat(ctx context.Context, key string) (*object, error) {
	o, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	if e := minio.ToErrorResponse(err); err != nil && e.Code == minio.NoSuchKey {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err)
	}
	found := objectOf(o)
	return &found, nil
}

// shortest and longest limit the validity of a signed request.
const (
	shortest = time.Hour
	longest  = 7 * 24 * time.Hour // the limit of S3
	slowest  = 1 << 20            // lowest assumed transfer rate, in bytes per second
)

// life returns the validity of requests for a number of bytes.
func life(bytes int64) time.Duration {
	seconds := min(bytes/slowest, int64(longest/time.Second))
	return min(shortest+time.Duration(seconds)*time.Second, longest)
}

// sign creates a request that a proxy can send within the given time.
func (b *bucket) sign(ctx context.Context, method, key string, life time.Duration, query url.Values, header http.Header) (*storagepb.SignedRequest, error) {
	if b.nobody {
		u := *b.core.EndpointURL()
		return &storagepb.SignedRequest{Url: u.JoinPath(b.name, key).String()}, nil
	}
	u, err := b.core.PresignHeader(ctx, method, b.name, key, life, query, header)
	if err != nil {
		return nil, explain(err)
	}
	signed := &storagepb.SignedRequest{Url: u.String(), Headers: map[string]string{}}
	for name := range header {
		signed.Headers[name] = header.Get(name)
	}
	return signed, nil
}

// explain adds the error class to an error of the library, and names the wrong field.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	var out *egress.Refused
	if errors.As(err, &out) {
		return problem.Invalid("endpoint", "%s", egress.Plain(err))
	}
	var e minio.ErrorResponse
	if !errors.As(err, &e) {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which can be signed
		}
		return problem.Unavailable("the endpoint cannot be reached: %s", egress.Plain(err)).WithField("endpoint")
	}
	switch e.Code {
	case minio.NoSuchBucket:
		return noBucket(e)
	case minio.InvalidBucketName:
		return problem.Invalid("bucket", "is not a bucket name that the storage accepts")
	case minio.NoSuchKey:
		return problem.NotFound("object").WithField("path")
	case "InvalidAccessKeyId", "XAdminUserNotFound": // the latter by versitygw
		return problem.Precondition("the storage does not know the access key; enter another access key and its secret").WithField("accessKeyId")
	case "SignatureDoesNotMatch":
		return problem.Precondition("the storage rejects the signature: the secret or the region is wrong; enter them again").WithField("secret")
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException", "InvalidRegion", "TemporaryRedirect":
		if e.Region != "" {
			return problem.Precondition("the region is %s", e.Region).WithField("region")
		}
		return problem.Precondition("the region is wrong").WithField("region")
	case minio.AccessDenied, "AllAccessDisabled", "AccountProblem", "NotSignedUp":
		return problem.Forbidden("the storage denies this to the access key").WithField("accessKeyId")
	case "RequestTimeTooSkewed":
		return problem.Unavailable("the clocks of the manager and of the storage differ too much").WithField("endpoint")
	}
	switch {
	case e.StatusCode == http.StatusTooManyRequests || e.StatusCode >= 500 && e.StatusCode != http.StatusNotImplemented:
		return problem.Unavailable("the storage answers %s", answer(e)).WithField("endpoint")
	case e.StatusCode == http.StatusForbidden || e.StatusCode == http.StatusUnauthorized:
		return problem.Forbidden("the storage denies this to the access key").WithField("accessKeyId")
	case e.StatusCode == http.StatusMovedPermanently || e.StatusCode == http.StatusTemporaryRedirect:
		return problem.Precondition("the bucket has another endpoint or another region").WithField("region")
	case e.StatusCode == http.StatusNotFound && e.BucketName != "":
		return noBucket(e)
	}
	return problem.Precondition("the storage answers %s; check that the endpoint speaks S3", answer(e)).WithField("endpoint")
}

func noBucket(e minio.ErrorResponse) error {
	return problem.Precondition("the storage has no bucket %q; create it there, or name another bucket", e.BucketName).WithField("bucket")
}

func answer(e minio.ErrorResponse) string {
	words := strings.TrimSpace(e.Code + " " + http.StatusText(e.StatusCode))
	if len(words) > 100 {
		words = words[:100] + "…"
	}
	return words
}
