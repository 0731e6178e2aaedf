// Command efs is the volume plugin for Amazon EFS, mounted by NFS. Scopes are directories. EFS has
// no limits for directories, so only the proxy enforces the limits that Berth sets. The size, state
// and mount targets of the file system come from the AWS API.
//
// docs/storage/efs.md documents the options and the known behavior of the product.
package main

import (
	"errors"
	"net/netip"
	"net/url"
	"time"

	"github.com/berthhq/berth/plugins/volume/driver"
)

type options struct {
	FileSystem     string        `json:"file_system_id" required:"true" pattern:"^fs-[0-9a-f]{8,40}$" about:"the file system that is mounted"`
	Region         string        `json:"region" required:"true" pattern:"^[a-z]{2}(-[a-z]+)+-[0-9]+$" about:"the AWS region that it is in"`
	Endpoint       string        `json:"endpoint" pattern:"^https://[^/?#]+$" about:"an address of the EFS API in place of the region's: a VPC endpoint"`
	CAFile         string        `json:"ca_file" pattern:"^/" about:"a PEM file with the authority that signed the endpoint's certificate; the system's by default"`
	Timeout        time.Duration `json:"timeout" min:"1" max:"600" about:"time limit of one attempt at a request"`
	Credentials    string        `json:"credentials" enum:"file,instance,container" about:"where credentials come from: a file, the EC2 instance's role, or the ECS task's or EKS pod's"`
	File           driver.Secret `json:"credentials_file" about:"an AWS credentials file (aws_access_key_id, aws_secret_access_key, perhaps aws_session_token)"`
	Profile        string        `json:"profile" pattern:"^[A-Za-z0-9_.@+-]+$" about:"the section of the credentials file"`
	MetadataURL    string        `json:"metadata_url" pattern:"^https?://[^/?#]+$" about:"the instance's metadata service"`
	ContainerURL   string        `json:"container_credentials_url" pattern:"^https?://[^?#]+$" about:"the value of AWS_CONTAINER_CREDENTIALS_FULL_URI in the container"`
	ContainerToken driver.Secret `json:"container_token_file" about:"the value of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE in the container"`
	MaxAge         int64         `json:"usage_max_age_s" min:"0" max:"86400" about:"a scope's usage is measured again when it is older than this"`
}

// Check checks the rules between options for driver.Decode.
func (o *options) Check() error {
	switch {
	case o.Credentials == "file" && o.File == "":
		return errors.New("credentials_file: is required if credentials is file")
	case o.Credentials == "container" && o.ContainerURL == "":
		return errors.New("container_credentials_url: is required if credentials is container")
	case !private(o.ContainerURL):
		return errors.New("container_credentials_url: without TLS, only addresses of this machine and its network are allowed")
	case !private(o.MetadataURL):
		return errors.New("metadata_url: without TLS, only addresses of this machine and its network are allowed")
	}
	return nil
}

// private reports whether credentials may be read from an address: with TLS, or from an address
// that routers do not forward, such as those that AWS uses for credentials and one of EKS.
func private(address string) bool {
	u, err := url.Parse(address)
	if err != nil || address == "" || u.Scheme == "https" {
		return err == nil
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && (ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsPrivate() && ip.Is6())
}

func main() {
	driver.Run(driver.Backend[options]{
		Vendor: "Amazon Web Services", Name: "efs", Version: "1.0.0",
		Defaults: options{Timeout: 15 * time.Second, Credentials: "file", Profile: "default", MetadataURL: "http://169.254.169.254", MaxAge: 300},
		Open:     open,
	})
}
