package registry

import (
	"sync"

	"github.com/sirupsen/logrus"
)

// quieten keeps the engine from logging every request, and every check for a missing image as an
// error. It sets logrus's one global logger, whose lines contain the Go version.
var quieten = sync.OnceFunc(func() {
	log := logrus.StandardLogger()
	log.SetFormatter(filter{log.Formatter})
})

type filter struct{ logrus.Formatter }

func (f filter) Format(e *logrus.Entry) ([]byte, error) {
	if _, engine := e.Data["go.version"]; engine {
		status, answered := e.Data["http.response.status"].(int)
		if e.Level > logrus.WarnLevel || answered && status < 500 {
			return nil, nil
		}
	}
	return f.Formatter.Format(e)
}
