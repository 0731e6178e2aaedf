package cluster

import (
	"testing"
)

func TestClusterOutput(t *testing.T) {
	f := newServer(t)
	f.Data("Cluster", `{"cluster":{"led":true,"leader":{"id":"m","address":"10.0.0.1:8421","since":"2026-03-01T12:00:00Z","epoch":7},"evictionsStopped":[],
	  "managers":[{"id":"m","address":"10.0.0.1:8421","version":"v1.2","leads":true},{"id":"o","address":"10.0.0.2:8421","version":"","leads":false}],
	  "storageProxies":[{"name":"s1","version":"v1.1","publicURL":"","lastSeenAt":"2026-03-01T12:00:00Z"}]}}`)
	f.Data("Versions", `{"agents":{"edges":[{"node":{"name":"node-1","status":"ALIVE","version":"v1.2","lastSeenAt":"2026-03-01T12:00:00Z",
	  "plugins":[{"name":"mock","version":"0.1","state":"RUNNING"}]}}],"pageInfo":{"hasNextPage":false,"endCursor":null}}}`)
	f.Golden(map[string][]string{
		"admin-cluster": {"admin", "cluster"},
	})
}
