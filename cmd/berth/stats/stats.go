// Package stats has the command that shows measurements over time. It is part of the commands of sessions, agents and
// deployments.
package stats

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthhq/berth/client"
	"github.com/berthhq/berth/cmd/berth/cli"
	"github.com/berthhq/berth/cmd/berth/output"
	"github.com/berthhq/berth/internal/csvtext"
)

// usual is the period without flags.
const usual = time.Hour

// Find returns the id of what an argument names, and the names of its parts by their ids.
type Find func(ctx context.Context, c *client.Client, ref string) (id string, parts map[string]string, err error)

// Command returns the command "stats" of "berth session", "berth agent" or "berth deploy".
func Command(a *cli.App, noun string, complete cobra.CompletionFunc, find Find) *cobra.Command {
	var period cli.PeriodFlags
	var metrics []string
	var points int
	var asCSV bool
	cmd := &cobra.Command{
		Use:   "stats " + map[string]string{"session": "SESSION", "agent": "AGENT", "deploy": "DEPLOYMENT"}[noun],
		Short: "Show measurements over time: the last, mean and highest value, or all points with --csv",
		Example: fmt.Sprintf("  berth %[1]s stats NAME --since 24h\n  berth %[1]s stats NAME --since 2026-11-01 --until 2026-11-08 --metric %[2]s --csv", noun,
			map[string]string{"session": "mem_used", "agent": "cpu_util", "deploy": "request_rate"}[noun]),
		Args: cli.Args(1, 1), ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := client.SeriesFilter{Metrics: metrics, Points: points}
			var err error
			if f.From, f.To, err = period.Read(a); err != nil {
				return err
			}
			if f.From.IsZero() {
				f.From = a.Now().Add(-usual)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			id, parts, err := find(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			f.Subjects = []string{id}
			list, err := c.TimeSeries(cmd.Context(), f)
			if err != nil {
				return err
			}
			if asCSV {
				return writeCSV(a.Out, list, parts)
			}
			if len(list) == 0 {
				a.Note("There are no measurements in this period.")
			}
			return a.Table(list, func() *output.Table { return table(list, parts) })
		},
	}
	period.Register(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&metrics, "metric", nil, "only this `metric` (repeatable)")
	flags.IntVar(&points, "points", 0, "most `points` of one metric, 2 to 2000 (default 300)")
	flags.BoolVar(&asCSV, "csv", false, "print every point as a line of CSV")
	return cmd
}

func table(list []client.TimeSeries, parts map[string]string) *output.Table {
	t := output.NewTable("METRIC", "DEVICE", "OF", "LAST", "MEAN", "HIGHEST", "QUALITY")
	for _, s := range list {
		last, mean, highest := summary(s)
		t.Row(s.Name, dash(s.DeviceID), dash(parts[s.Subject]), amount(last, s), amount(mean, s), amount(highest, s), strings.ToLower(s.Quality.String()))
	}
	return t
}

// isCounter reports whether a metric counts from the start of its subject, so that its increase says something.
func isCounter(name string) bool {
	return strings.HasPrefix(name, "net_") || strings.HasPrefix(name, "io_") || strings.HasSuffix(name, "_ms")
}

// summary returns what is shown of a line. Of a counter, these are increases per second.
func summary(s client.TimeSeries) (last, mean, highest float64) {
	n := len(s.At)
	if !isCounter(s.Name) {
		sum := 0.0
		for i := range n {
			sum += s.Mean[i]
			highest = max(highest, s.Maximum[i])
		}
		return s.Mean[n-1], sum / float64(n), highest
	}
	grown, seconds := 0.0, 0.0
	for i := 1; i < n; i++ {
		apart := s.At[i].Sub(s.At[i-1]).Seconds()
		more := max(0, s.Maximum[i]-s.Maximum[i-1]) // a counter that decreases was reset
		if apart <= 0 {
			continue
		}
		grown, seconds = grown+more, seconds+apart
		last = more / apart
		highest = max(highest, last)
	}
	if seconds > 0 {
		mean = grown / seconds
	}
	return last, mean, highest
}

func amount(v float64, s client.TimeSeries) string {
	text := strconv.FormatFloat(v, 'f', 1, 64)
	switch s.Unit {
	case "bytes":
		text = output.Bytes(int64(v))
	case "count", "":
	case "percent":
		text += " %"
	default:
		text += " " + s.Unit
	}
	if isCounter(s.Name) {
		text += "/s"
	}
	return text
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// writeCSV writes one line per point. Numbers are those of the manager, in the unit of the metric.
func writeCSV(out io.Writer, list []client.TimeSeries, parts map[string]string) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"at", "id", "of", "metric", "device", "unit", "mean", "minimum", "maximum"}) // Flush has the error
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	for _, s := range list {
		for i, at := range s.At {
			_ = w.Write([]string{
				at.UTC().Format(time.RFC3339), s.Subject, csvtext.Cell(parts[s.Subject]), csvtext.Cell(s.Name), csvtext.Cell(s.DeviceID), csvtext.Cell(s.Unit),
				number(s.Mean[i]), number(s.Minimum[i]), number(s.Maximum[i]),
			})
		}
	}
	w.Flush()
	return w.Error()
}
