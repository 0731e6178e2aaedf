package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/e2e/cluster"
)

// starterApps are the apps of the starter images, each with its script in web/e2e/apps and with a
// command that the session runs before.
var starterApps = []struct {
	image, app, walk, path, mem string
	before                      string
}{
	{"python:3.11", "jupyter", "jupyter", "/tree", "512m", ""},
	{"jupyter:4.6", "jupyterlab", "jupyterlab", "/lab?reset", "1g", ""},
	{"jupyter:4.6", "tensorboard", "tensorboard", "/", "1g", logRuns},
	{"jupyter:4.6", "mlflow", "mlflow", "/", "1g", logRuns},
	{"code:4.100", "code-server", "code-server", "/?folder=/home/work", "1g", "rm -f typed.txt; echo first > note.txt"},
	{"r:4.5", "shiny", "shiny", "/", "512m", shinyApp},
	{"r:4.5", "jupyterlab", "jupyterlab", "/lab?reset", "1g", ""},
	{"torch:2.6", "jupyterlab", "jupyterlab", "/lab?reset", "1g", "python3 -c 'import torch; print(torch.ones(2, 3).sum())'"},
	{"desktop:1", "novnc", "novnc", "/", "512m", ""},
}

// logRuns writes a run for TensorBoard and one for MLflow.
const logRuns = `[ -e logs ] || python3 - <<'END'
import time, mlflow
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter("logs/first-run")
for step in range(1, 11):
    writer.add_event(Event(wall_time=time.time(), step=step, summary=Summary(value=[Summary.Value(tag="loss", simple_value=1 / step)])))
writer.close()
mlflow.set_experiment("harbour")
with mlflow.start_run(run_name="first-run"):
    for step in range(1, 11):
        mlflow.log_metric("loss", 1 / step, step=step)
END`

const shinyApp = `cat > app.R <<'END'
library(shiny)
ui <- fluidPage(numericInput("number", "Number", 2), textOutput("product"))
server <- function(input, output) output$product <- renderText(7 * input$number)
shinyApp(ui, server)
END`

// Users open the apps of the starter images in the browser, in sub-domain mode and in path mode.
// Images that make images has not built are skipped.
func TestAppsOfStarterImages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for _, a := range starterApps {
		t.Run(a.image+" "+a.app, func(t *testing.T) {
			if name, _, _ := strings.Cut(a.image, ":"); !platform.HasImage(name) {
				t.Skipf("run make images IMAGES=%s", name)
			}
			u := platform.User(t)
			id := u.Run(client.CreateSessionInput{Image: a.image, Slots: cluster.Slots("cpu", "1", "mem", a.mem)}).ID
			u.Until(id, "RUNNING")
			for _, mode := range []string{"hosts", "paths"} {
				if out, code := u.Exec(id, "cd /home/work; "+a.before); code != 0 {
					t.Fatalf("before: %s", out)
				}
				var got struct{ OpenApp struct{ URL string } }
				u.Query(`mutation($in: OpenAppInput!) { openApp(input: $in) { url } }`,
					map[string]any{"in": map[string]any{"session": id, "app": a.app, "path": a.path}}, &got)
				u.Walk("apps/"+a.walk, "BERTH_APP="+inMode(t, got.OpenApp.URL, mode), "BERTH_PICTURE="+a.image+"-"+a.app+"-"+mode)
				// The app uses the prefix that it was started with.
				if code := query(t, u, `mutation($id: ID!, $app: String!) { stopApp(input: {session: $id, app: $app}) { app { name } } }`, map[string]any{"id": id, "app": a.app}, nil); code != "" {
					t.Fatalf("stop: %s", code)
				}
			}
			u.End(id)
		})
	}
}

// inMode converts the sub-domain address of an app to the address in a mode.
func inMode(t *testing.T, address, mode string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if mode == "hosts" {
		return address
	}
	label, _, _ := strings.Cut(u.Hostname(), ".")
	return platform.Paths + "/apps/" + label + u.RequestURI()
}
