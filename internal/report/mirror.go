package report

// Mirror is a server that has copies of the images of a registry.
type Mirror struct {
	Host      string `json:"host"` // and port, without a scheme
	PlainHTTP bool   `json:"plainHttp,omitempty"`
	Login     bool   `json:"login,omitempty"` // reports whether it has credentials of its own
}
