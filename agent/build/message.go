package build

// Request is the first line of a builder's standard input. The builder stops when its standard input
// ends.
type Request struct {
	Root       string // directory of the project's cache, which only one builder uses at a time
	Runc       string // path of the OCI runtime
	ResolvConf string // content of /etc/resolv.conf for steps
	NetNS      string // path of the network namespace of the sandbox, which steps join
	Cgroup     string // cgroup of the sandbox, below the cgroup root; those of steps are created below it
	CABundle   string // path of the PEM file of the authorities that steps trust; "" = those of their images
	CacheBytes int64  // the cache is reduced to this size before the build

	Dockerfile string
	Context    []byte // a tar archive, compressed with gzip or not; empty: there are no files
	Files      Files  // unpacked before Context, which replaces files of the same names
	Source     Source // its files are below Files and Context
	Target     string // stage of the Dockerfile; "" = the last one
	Args       map[string]string
	Secrets    map[string]string
	NoCache    bool
	Epoch      int64 // Unix seconds; files that are newer get this time

	// Images are the images that the Dockerfile names, by their names there. Others are refused.
	Images     map[string]string
	Registries []Registry // of Images
	Output     Repository
	Cache      Cache
	Indexed    bool  // layers get an index of their files, as eStargz
	MaxBytes   int64 // of the layers that Output gets in addition to those of the base images; 0 = no limit
}

// Way is how a registry is reached.
type Way struct {
	PlainHTTP    bool
	Proxy        string // URL; "" = that of the environment
	Certificates string // in PEM, trusted in addition to those of the machine
}

// Registry is a registry that base images come from.
type Registry struct {
	Way
	Host     string
	Username string
	Password string
}

// Repository is a repository that the builder writes to.
type Repository struct {
	Way
	Name      string // host/path
	Username  string
	Password  string
	MountFrom string // another repository of the registry that has layers of the base image
}

// Files are a tar archive, compressed with gzip or not, as the blobs of a repository.
type Files struct {
	Repository
	Parts []string // digests, in order; none: there are no files
}

// Cache is the cache of a project in a registry. Import and Export are tags of it.
type Cache struct {
	Repository
	Export string
	Import []string
	// Reader and Secret are the credentials for reading.
	Reader, Secret string
}

// Source is a directory of a commit of a Git repository. With an Address the builder fetches it, and does nothing
// else; without one, a build uses the files that were fetched for the same ID.
type Source struct {
	ID        string // of the kernel; "" = there is no source
	Address   string // https
	Ref       string // branch, tag or commit; "" = the default branch
	Directory string // "" = all files
	File      string // the description, below the directory; "" = the first of the known names
	Username  string
	Password  string
}

// Fetched is a source whose files are on the disk of the project.
type Fetched struct {
	Commit         string
	File, Text     string            // the description
	ContainerFiles map[string]string // Dockerfiles, by name, which a devcontainer.json can refer to
}

// Event is a line of a builder's standard output. One with Result, Fetched or Error is the last one.
type Event struct {
	Log     string   `json:",omitempty"` // output for the user
	Phase   string   `json:",omitempty"`
	Result  *Result  `json:",omitempty"`
	Fetched *Fetched `json:",omitempty"`
	Error   *Error   `json:",omitempty"`
}

// Result is an image in its repository.
type Result struct {
	Digest     string
	LayerBytes int64 // of the layers that base images do not have
	Sent       int64 // bytes that the registry did not have
	Steps      int   // steps of the Dockerfile
	Cached     int   // steps that did not run because the cache has their results
}

// Error is the cause of a failed build.
type Error struct {
	Message string
	Step    string // the step that failed; "" = none
}
