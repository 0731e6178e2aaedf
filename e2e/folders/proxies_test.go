package folders

import (
	"testing"
)

// Every proxy serves every volume, and the platform shows how each volume enforces limits.
func TestVolumes(t *testing.T) {
	u := platform.User(t)
	var got struct {
		Volumes struct {
			Edges []struct {
				Node struct{ Name, Backend, Health, Enforcement string }
			}
		}
	}
	u.Query(`{ volumes { edges { node { name backend health enforcement } } } }`, nil, &got)
	want := map[string]string{"disk": "COOPERATIVE", "small": "COOPERATIVE", "pool": "HARD"}
	for _, e := range got.Volumes.Edges {
		v := e.Node
		if v.Health != "HEALTHY" || v.Enforcement != want[v.Name] {
			t.Errorf("%+v, want limits kept %s", v, want[v.Name])
		}
	}
}
