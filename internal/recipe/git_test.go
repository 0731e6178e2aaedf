package recipe_test

import (
	"testing"

	"github.com/berthhq/berth/internal/recipe"
)

func TestCheckGit(t *testing.T) {
	for _, c := range [][3]string{
		{"https://example.org/a/b.git", "", ""}, {"https://example.org:8443/a", "main", "docker/tools"}, {"https://10.1.2.3/a", "v1.2", "."},
		{"https://example.org/a", "0123456789012345678901234567890123456789", ""},
	} {
		if err := recipe.CheckGit(c[0], c[1], c[2]); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, c := range [][3]string{
		{"file:///etc", "", ""}, {"ssh://git@10.0.0.1/a", "", ""}, {"git@10.0.0.1:a", "", ""}, {"http://example.org/a", "", ""}, {"ext::sh -c id", "", ""},
		{"https://token@example.org/a", "", ""}, {"https://u:p@example.org/a", "", ""}, {"https://localhost/a", "", ""}, {"https://127.0.0.1/a", "", ""},
		{"https://169.254.169.254/a", "", ""}, {"https://[::1]/a", "", ""}, {"https://example.org/a?x=y", "", ""}, {"https://example.org/a#main", "", ""},
		{"https://example.org/a", "--upload-pack=x", ""}, {"https://example.org/a", "a..b", ""}, {"https://example.org/a", "", "../x"},
		{"https://example.org/a", "", "/etc"}, {"https://example.org/a", "", "a/../../x"}, {"", "", ""},
	} {
		if err := recipe.CheckGit(c[0], c[1], c[2]); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}
