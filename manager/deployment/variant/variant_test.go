package variant

import (
	"slices"
	"strings"
	"testing"
)

// The data is complete: what an engine needs to be started and what a form needs to be drawn.
func TestVariantsAreComplete(t *testing.T) {
	t.Parallel()
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, v := range list {
		if v.Name == "" || names[v.Name] || v.Title == "" || v.Port == 0 {
			t.Errorf("%+v", v)
		}
		names[v.Name] = true
		text := strings.Join(v.Command, " ")
		for _, value := range v.Environment {
			text += " " + value
		}
		if v.Name != "custom" && (!strings.Contains(text, "{model}") || !strings.Contains(text, "{port}")) {
			t.Errorf("%s does not get its model and its port: %s", v.Name, text)
		}
		options := map[string]bool{}
		for _, o := range v.Options {
			if o.Name == "" || options[o.Name] || o.Help == "" || (o.Argument == "") == (o.Variable == "") {
				t.Errorf("%s: %+v", v.Name, o)
			}
			options[o.Name] = true
			switch o.Type {
			case Integer, Number:
				if o.Minimum >= o.Maximum {
					t.Errorf("%s: %s is between %v and %v", v.Name, o.Name, o.Minimum, o.Maximum)
				}
			case Choice:
				if len(o.Choices) < 2 {
					t.Errorf("%s: %s has the choices %q", v.Name, o.Name, o.Choices)
				}
			case Text, Switch:
			default:
				t.Errorf("%s: %s has the type %q", v.Name, o.Name, o.Type)
			}
		}
	}
	for _, name := range []string{"vllm", "sglang", "tgi", "tei", "llama.cpp", "triton", "ollama", "custom"} {
		if !names[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func start(t *testing.T, name string, options map[string]string) *Start {
	t.Helper()
	v, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Start("/models/a b", "my; model", 9000, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStart(t *testing.T) {
	t.Parallel()
	got := start(t, "vllm", map[string]string{"tensorParallelSize": "2", "enablePrefixCaching": "true", "trustRemoteCode": "false", "dtype": ""})
	want := []string{"vllm", "serve", "/models/a b", "--host", "0.0.0.0", "--port", "9000", "--served-model-name", "my; model", "--tensor-parallel-size", "2", "--enable-prefix-caching"}
	if !slices.Equal(got.Command, want) {
		t.Errorf("vllm: %q, want %q", got.Command, want)
	}
	got = start(t, "ollama", map[string]string{"maxNumSeqs": "4"})
	if e := got.Environment; e["OLLAMA_HOST"] != "0.0.0.0:9000" || e["OLLAMA_MODELS"] != "/models/a b" || e["OLLAMA_NUM_PARALLEL"] != "4" {
		t.Errorf("ollama: %v", e)
	}
	got = start(t, "triton", map[string]string{"modelControlMode": "poll"})
	if last := got.Command[len(got.Command)-1]; last != "--model-control-mode=poll" {
		t.Errorf("triton: %q", got.Command)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	t.Parallel()
	v, err := Find("vllm")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"tensorParallelSize": "0", "gpuMemoryUtilization": "NaN", "maxModelLen": "1e3", "dtype": "int8", "enablePrefixCaching": "yes",
		"toolCallParser": "--api-key", "other": "1",
	} {
		if _, err := v.Start("/m", "m", 1, map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), "options."+name) {
			t.Errorf("%s = %s: %v", name, value, err)
		}
	}
	if _, err := Find("other"); err == nil || !strings.Contains(err.Error(), "vllm, sglang") {
		t.Errorf("an unknown variant: %v", err)
	}
}
