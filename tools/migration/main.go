// Command migration writes the next file of ent/migrate/sql: the statements that turn the tables of
// the existing files into those that ent/schema describes. It starts a temporary PostgreSQL. Read
// the file before you commit it: for example, a renamed column looks like one dropped and one added
// column.
//
//	go run ./tools/migration add_colour
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"github.com/berthhq/berth/ent/migrate"
	"github.com/berthhq/berth/internal/service/postgres"
)

const dir = "ent/migrate/sql"

func main() {
	if len(os.Args) != 2 || !regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(os.Args[1]) {
		fmt.Fprintln(os.Stderr, "usage: migration NAME, in lower case with underscores, from the root of the repository")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "migration:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) (err error) {
	scratch, err := os.MkdirTemp("", "berth-migration-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	server, err := postgres.Start(ctx, postgres.Config{
		Dir: filepath.Join(scratch, "postgres"), Volatile: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	db, err := sql.Open("pgx", server.DSN(postgres.Database))
	if err != nil {
		return err
	}
	defer db.Close()
	if err := migrate.Up(ctx, db, os.DirFS(dir)); err != nil {
		return err
	}
	files, err := fs.Glob(os.DirFS(dir), "*.sql")
	if err != nil {
		return err
	}
	var diff bytes.Buffer
	err = migrate.NewSchema(entsql.OpenDB(dialect.Postgres, db)).
		WriteTo(ctx, &diff, migrate.WithDropColumn(true), migrate.WithDropIndex(true))
	if err != nil {
		return err
	}
	if diff.Len() == 0 {
		fmt.Println("the tables agree with ent/schema")
		return nil
	}
	path := filepath.Join(dir, fmt.Sprintf("%04d_%s.sql", len(files)+1, name))
	fmt.Println(path)
	return os.WriteFile(path, diff.Bytes(), 0o644)
}
