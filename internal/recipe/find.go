package recipe

import (
	"path"
	"regexp"
)

// Descriptions are the files that describe a build, in the order in which they are looked for in a directory.
func Descriptions() []string {
	return []string{
		"berth.yaml", "Dockerfile", "Containerfile", ".devcontainer/devcontainer.json", "devcontainer.json", "environment.yml", "requirements.txt",
	}
}

// kinds are the kinds of descriptions by the form of their names.
var kinds = []struct {
	form *regexp.Regexp
	kind Kind
}{
	{regexp.MustCompile(`^.*\.json$`), KindDevcontainer},
	{regexp.MustCompile(`^.*(environment|conda).*\.ya?ml$`), KindEnvironment},
	{regexp.MustCompile(`^.*\.ya?ml$`), KindRecipe},
	{regexp.MustCompile(`^.*requirements.*\.txt$`), KindRequirements},
	{containerFile, KindDockerfile},
}

var containerFile = regexp.MustCompile(`(?i)^.*(docker|container)file.*$`)

// KindOf returns the kind of the description in a file, and reports whether its name has one of the known forms.
func KindOf(file string) (Kind, bool) {
	for _, k := range kinds {
		if k.form.MatchString(path.Base(file)) {
			return k.kind, true
		}
	}
	return "", false
}

// IsContainerFile reports whether a file has the name of a Dockerfile, which a devcontainer.json can refer to.
func IsContainerFile(file string) bool { return containerFile.MatchString(path.Base(file)) }

// KnownNames says which names KindOf knows.
const KnownNames = "*.yaml, *requirements*.txt, *environment*.yml, *.json and *Dockerfile* are known"
