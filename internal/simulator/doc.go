// Package simulator simulates storage products. A product serves
// its vendor's REST calls, or program, over TLS, and keeps bytes on a real btrfs
// file system in an image: a limit that a call sets is one that refuses writes.
// Tests of plugins, their conformance and demonstrations import it; the products
// are below it, one package each.
//
// What can go wrong with a real one can be made to happen: a [Fault] delays,
// refuses (429, 503 with Retry-After), repeats secrets, ends log-ins, or cuts connections;
// [Jobs.FailNext] fails a job; [Options] bound pages, slow jobs and shorten
// tokens; settings are the product's own ("licence": "none").
//
// # A vendor
//
// A package internal/simulator/NAME has one exported function, a [Factory]:
//
//	func New(a *simulator.Server) (simulator.Product, error) {
//		p := &product{server: a, tokens: a.NewTokens(0)}
//		p.mux.HandleFunc("POST /api/login", p.login)
//		p.mux.HandleFunc("POST /api/quotas/{id}", p.quota)
//		return p, nil
//	}
//
//	func (p *product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
//		if r.URL.Path != "/api/login" && !p.tokens.Valid(r.Header.Get("X-Auth-Token")) {
//			p.refuse(w, http.StatusUnauthorized, "token is invalid or expired")
//			return
//		}
//		p.mux.ServeHTTP(w, r)
//	}
//
//	func (p *product) Options() map[string]any {
//		return map[string]any{"url": p.server.URL, "ca_file": p.server.CAFile,
//			"username": p.server.User, "password_file": p.server.PasswordFile}
//	}
//
// Its package doc lists the settings, and the sources that its shapes come from.
// It keeps to these rules, so that a plugin's mistake is found here:
//
//   - [Decode] and [Query] refuse fields and parameters that the product does not
//     have; the errors have the vendor's form and codes. Answers have only what
//     was asked for where the vendor does so.
//   - What the vendor does later is a [Jobs] job; what it lists is paged by [Page].
//   - The state is the product's: a limit that is set on a path that does not exist
//     is an error, or is not, as with the vendor's.
//   - Limits go to [Tree.Limit], and usage comes from [Tree.Usage]. A directory that
//     a client made by mkdir can be limited too; its inode number changes then and is 256, as
//     of all that can be limited, so a vendor that names directories by inode must
//     have its resolver of paths used, and hands out numbers of its own. Numbers of
//     files can be counted and not limited: Options tells the plugin not to offer that.
//   - Rates come from [Tree.Rates], counters from [Tree.Totals], the size of the whole
//     from [Tree.Capacity]. They are those of the image's disk, and move when
//     something is written out.
//   - A product that gives every scope a file system or share of its own makes
//     it with [Tree.Make] at the top of the tree, as if it were mounted there.
//   - A product that is managed by a program has [Server.Command] make that.
//   - Secrets that are not the array's password or one of [Tokens] go through
//     [Server.Secret]; all are left out of the log.
//
// The plugin's test starts it by simulatortest.Start, hands the plugin Mount() and
// PluginOptions(), and compares simulatortest.Golden; a line in the function stands of
// cmd/berth-volume-conformance puts the vendor into `make conformance`. NetApp, in
// internal/simulator/netapp and plugins/volume/netapp, is the one to copy.
package simulator
