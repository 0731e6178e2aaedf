package main

import (
	"strings"
	"testing"
)

const oneRegistry = `{"registries":[{"id":"r-1","name":"hub","host":"hub.example.org","plainHttp":false,"createdAt":"2026-03-04T11:59:00Z","lastScannedAt":null}]}`

func TestRegistryChange(t *testing.T) {
	f := newFake(t)
	said := sayings(f, map[string]string{
		"Registries":     oneRegistry,
		"UpdateRegistry": `{"updateRegistry":{"registry":{"id":"r-1","name":"mirror","host":"hub.example.org","plainHttp":false,"createdAt":"2026-03-04T11:59:00Z","lastScannedAt":null}}}`,
		"DeleteRegistry": `{"deleteRegistry":{"id":"r-1"}}`,
	})
	env := map[string]string{"BERTH_TOKEN": "secret", "BERTH_URL": f.url}
	for _, c := range []struct{ args, stdin, op, says, shows string }{
		{"image registry update hub --name mirror --username robot --password-stdin", "token\n", "UpdateRegistry", `{"id":"r-1","name":"mirror","username":"robot","password":"token"}`, "mirror"},
		{"image registry update hub.example.org --plain-http=false --username=", "", "UpdateRegistry", `{"id":"r-1","plainHttp":false,"username":""}`, "hub.example.org"},
		{"image registry delete r-1", "", "DeleteRegistry", `{"id":"r-1"}`, ""},
	} {
		r := f.with(env, c.stdin, strings.Fields(c.args)...)
		if r.code != 0 || said[c.op] != `{"input":`+c.says+`}` && said[c.op] != c.says || !strings.Contains(r.out, c.shows) {
			t.Errorf("%s: %+v\nsaid %s", c.args, r, said[c.op])
		}
		if strings.Contains(r.out+r.errors, "token") {
			t.Errorf("%s prints the password: %+v", c.args, r)
		}
	}
	if r := f.berth("image", "registry", "delete", "nothing"); r.code != exitNotFound {
		t.Errorf("%+v", r)
	}
}

func TestImagesShowTheirMinimum(t *testing.T) {
	f := newFake(t)
	f.data("Images", `{"images":{"edges":[{"node":{"id":"i-1","reference":"hub.example.org/tool:1","name":"tool:1","architecture":"amd64","sizeBytes":1024,"labels":{},
		"minimumSlots":{"cpu":"2","mem":"4294967296"},"status":"gone","registry":null}}],"pageInfo":{"hasNextPage":false}}}`)
	if r := f.berth("image", "ls"); r.code != 0 || !strings.Contains(r.out, "MINIMUM") || !strings.Contains(r.out, "4 GiB") {
		t.Errorf("%+v", r)
	}
}
