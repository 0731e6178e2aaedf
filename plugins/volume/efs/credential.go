package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/berthhq/berth/plugins/volume/driver"
)

// early is how long before their expiry credentials are renewed.
const early = 5 * time.Minute

// provider returns the credentials for signing requests. A file is read for each request;
// credentials from a service are cached until shortly before their expiry.
func (o options) provider(client *http.Client, hidden *driver.Hidden) aws.CredentialsProvider {
	var from aws.CredentialsProvider
	switch o.Credentials {
	case "instance":
		from = ec2rolecreds.New(func(r *ec2rolecreds.Options) {
			r.Client = imds.New(imds.Options{Endpoint: o.MetadataURL, HTTPClient: client, EnableFallback: aws.FalseTernary})
		})
	case "container":
		from = endpointcreds.New(o.ContainerURL, func(r *endpointcreds.Options) {
			r.HTTPClient = client
			if o.ContainerToken != "" {
				r.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
					token, err := o.ContainerToken.Read()
					hidden.Add(token)
					return token, err
				})
			}
		})
	default:
		return hiding{aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return shared(o.File, o.Profile) }), hidden}
	}
	return aws.NewCredentialsCache(hiding{from, hidden}, func(c *aws.CredentialsCacheOptions) { c.ExpiryWindow = early })
}

// hiding keeps the credentials out of texts for people, and classifies the errors of a provider.
type hiding struct {
	aws.CredentialsProvider
	hidden *driver.Hidden
}

func (h hiding) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := h.CredentialsProvider.Retrieve(ctx)
	h.hidden.Add(c.SecretAccessKey, c.SessionToken)
	if err != nil && ctx.Err() == nil {
		err = status.Errorf(codes.Unauthenticated, "credentials: %s", firstLine(h.hidden.Redact(status.Convert(err).Message())))
	}
	return c, err
}

// shared reads a section of an AWS credentials file. Its errors do not contain the contents.
func shared(file driver.Secret, profile string) (aws.Credentials, error) {
	text, err := file.Read()
	if err != nil {
		return aws.Credentials{}, err
	}
	c := aws.Credentials{Source: "file"}
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = strings.TrimSpace(line[1 : len(line)-1])
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		if section != profile || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(name)) {
		case "aws_access_key_id":
			c.AccessKeyID = value
		case "aws_secret_access_key":
			c.SecretAccessKey = value
		case "aws_session_token":
			c.SessionToken = value
		}
	}
	if !c.HasKeys() {
		return c, fmt.Errorf("%s has no aws_access_key_id and aws_secret_access_key in the section %s", file, profile)
	}
	return c, nil
}
