package template

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/internal/resource"
)

// fields is a request as JSON fields, without those that have no value.
type fields map[string]any

func fieldsOf(request any) (fields, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("compare requests: %w", err)
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("compare requests: %w", err)
	}
	return f.clean(), nil
}

// clean removes empty values, and normalizes amounts.
func (f fields) clean() fields {
	for name, value := range f {
		if f[name] = tidy(value); empty(f[name]) {
			delete(f, name)
		}
	}
	delete(f, "idempotencyKey")
	if slots, ok := f["slots"].(map[string]any); ok {
		for slot, amount := range slots {
			if n, err := resource.Parse(slot, fmt.Sprint(amount)); err == nil {
				slots[slot] = resource.Format(slot, n)
			}
		}
	}
	return f
}

// tidy removes empty values below a value.
func tidy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			if one == nil || one == false {
				delete(v, name)
			} else {
				v[name] = tidy(one)
			}
		}
		if env, ok := v["environment"].(map[string]any); ok && len(env) == 0 {
			delete(v, "environment")
		}
	case []any:
		for i, one := range v {
			v[i] = tidy(one)
		}
	}
	return value
}

func empty(value any) bool {
	if value == nil || value == false || value == "" {
		return true
	}
	v := reflect.ValueOf(value)
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// differences lists the fields that differ between have and want, as sentences.
func differences(have, want fields) (list []string) {
	names := map[string]bool{}
	for _, f := range []fields{have, want} {
		for name := range f {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !reflect.DeepEqual(have[name], want[name]) {
			list = append(list, fmt.Sprintf("%s is %s, and %s in the file", name, written(name, have[name]), written(name, want[name])))
		}
	}
	return list
}

func written(name string, value any) string {
	if value == nil {
		return "not set"
	}
	if name == "environment" { // its values may be secrets
		if env, ok := value.(map[string]any); ok {
			return "[" + strings.Join(slices.Sorted(maps.Keys(env)), " ") + "]"
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

// against compares a live session with the request of a file. It skips fields that the file leaves
// out, because the server chooses them.
func against(ctx context.Context, c *client.Client, session *client.SessionRequest, in client.CreateSessionInput) ([]string, error) {
	have, err := fieldsOf(session)
	if err != nil {
		return nil, err
	}
	image, err := cli.FindImage(ctx, c, in.Image)
	if err == nil {
		in.Image = image.Reference
	}
	want, err := fieldsOf(in)
	if err != nil {
		return nil, err
	}
	if err := foldersByID(ctx, c, want); err != nil {
		return nil, err
	}
	for _, f := range []fields{have, want} {
		for _, gone := range []string{"name", "startsAt", "dependsOn", "template", "from"} { // they only matter for the start
			delete(f, gone)
		}
	}
	for _, chosen := range []string{"project", "resourceGroup", "priority", "type", "shmBytes", "diskBytes", "autoMount"} {
		if want[chosen] == nil {
			delete(have, chosen)
		}
	}
	filled(have, want)
	return differences(have, want), nil
}

// filled copies the amounts of cpu and memory that the file leaves to the image.
func filled(have, want fields) {
	got, _ := have["slots"].(map[string]any)
	asked, _ := want["slots"].(map[string]any)
	for _, slot := range []string{resource.CPU, resource.Mem} {
		if asked != nil && asked[slot] == nil && got[slot] != nil {
			asked[slot] = got[slot]
		}
	}
}

// foldersByID replaces the names of the folders in mounts with IDs.
func foldersByID(ctx context.Context, c *client.Client, f fields) error {
	mounts, _ := f["mounts"].([]any)
	for _, one := range mounts {
		m, ok := one.(map[string]any)
		if !ok {
			continue
		}
		folder, err := cli.FindFolder(ctx, c, fmt.Sprint(m["vfolder"]))
		if err != nil {
			return err
		}
		m["vfolder"] = folder.ID
		if m["target"] == nil {
			m["target"] = "/home/work/" + folder.Name
		}
	}
	return nil
}
