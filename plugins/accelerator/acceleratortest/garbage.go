package acceleratortest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/berthhq/berth/plugins/accelerator"
	pb "github.com/berthhq/berth/plugins/accelerator/acceleratorpb"
	"github.com/berthhq/berth/plugins/suite"
)

const (
	// spoilings is the maximum number of files to corrupt. A fixed seed selects them on a
	// machine with more files.
	spoilings = 100
	// spoilTime ends the check earlier on a busy machine, and leaves time for the last file.
	spoilTime = checkTimeout / 2
)

// rubbish has corruptions that no driver would cause.
var rubbish = map[string]func(t *bench, file string) error{
	"bytes":     writes("\xff\xfe\x00\x01garbage\x80\n"),
	"empty":     writes(""),
	"huge":      writes("99999999999999999999999999999999\n"),
	"negative":  writes("-1\n"),
	"long":      writes(strings.Repeat("A9", 60_000)),
	"format":    writes("%s%n ../../../etc/passwd \x1b[2J\"'\n{[<&;\n"),
	"missing":   func(b *bench, file string) error { return b.tree.Remove(file) },
	"directory": (*bench).makeDirectory, // can be opened but not read, even by root
}

var kinds = []string{"bytes", "missing", "huge", "empty", "directory", "negative", "long", "format"}

func writes(text string) func(*bench, string) error {
	return func(b *bench, file string) error { return b.tree.Write(file, text) }
}

func (b *bench) makeDirectory(file string) error {
	p := filepath.Join(b.tree.Dir, file)
	return errors.Join(os.Remove(p), os.Mkdir(p, 0o755))
}

func garbage(ctx context.Context, b *bench) error {
	if err := b.ownMachine("machine"); err != nil {
		return err
	}
	files := b.tree.Files()
	if len(files) == 0 {
		return suite.Skip("the machine has no files")
	}
	c, before, err := b.ready(ctx)
	if err != nil {
		return err
	}
	alike := families(files)
	random := rand.New(rand.NewPCG(5, 8))
	random.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	n, began := 0, time.Now()
	for ; n < spoilings && time.Since(began) < spoilTime; n++ {
		file, kind := files[n%len(files)], kinds[(n+n/len(files))%len(kinds)]
		if n >= len(files)*len(kinds) {
			break
		}
		if c, err = b.spoil(ctx, c, before, file, kind, alike[family(file)]); err != nil {
			return fmt.Errorf("%s, %s: %w", file, kind, err)
		}
	}
	_, after, err := b.again(ctx, c)
	if err != nil {
		return err
	}
	if err := equal("after all files were restored, the snapshot differs", before, after); err != nil {
		return err
	}
	return suite.Note(fmt.Sprintf("%d times, of %d files", n, len(files)))
}

// spoil corrupts a file, waits for a scan and restores the file.
func (b *bench) spoil(ctx context.Context, c *accelerator.Client, before *pb.DeviceSnapshot, file, kind string, siblings int) (*accelerator.Client, error) {
	if err := rubbish[kind](b, file); err != nil {
		return c, fmt.Errorf("spoil: %w", err)
	}
	c, after, err := b.again(ctx, c)
	if err != nil {
		return c, err
	}
	if err := bearable(before, after, siblings); err != nil {
		return c, err
	}
	if kind == "directory" {
		if err := os.Remove(filepath.Join(b.tree.Dir, file)); err != nil {
			return c, err
		}
	}
	return c, b.tree.Write(file, b.site.machine.Files[file])
}

// again makes the plugin scan the hardware again, by configuring it or, if it refuses that, by
// restarting it.
func (b *bench) again(ctx context.Context, c *accelerator.Client) (*accelerator.Client, *pb.DeviceSnapshot, error) {
	if !has(c.Description, pb.Capability_CAPABILITY_RECONFIGURE) {
		if err := c.Close(); err != nil {
			return c, nil, err
		}
		return b.ready(ctx)
	}
	if _, err := c.Configure(ctx, b.request()); err != nil {
		return c, nil, fmt.Errorf("configure: %w", err)
	}
	s, err := snapshot(ctx, c)
	return c, s, err
}

// bearable returns an error if a corrupt file affects devices that it does not belong to. Only the
// plugin knows which file belongs to which device. But if there are as many similar files as
// boards, one of them must not affect more than one board.
func bearable(before, after *pb.DeviceSnapshot, siblings int) error {
	board := boards(before)
	all, hurt := map[int]bool{}, map[int]bool{}
	var ids []string
	for _, d := range usable(before) {
		all[board[d.GetId()]] = true
		if now := device(after, d.GetId()); !now.GetAllocatable() || !proto.Equal(capacity(d), capacity(now)) {
			hurt[board[d.GetId()]] = true
			ids = append(ids, d.GetId())
		}
	}
	most := len(all)
	if siblings > 1 {
		most = max(1, (len(all)+siblings-1)/siblings)
	}
	if len(hurt) > most {
		return fmt.Errorf("one of %d similar files affects %v; now there are %q", siblings, ids, names(after))
	}
	return nil
}

func capacity(d *pb.Device) *pb.Device { return &pb.Device{Capacity: d.GetCapacity()} }

var number = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// family returns a path with its numbers and addresses replaced, which is the same for similar
// files.
func family(file string) string { return number.ReplaceAllString(file, "#") }

func families(files []string) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		out[family(f)]++
	}
	return out
}
