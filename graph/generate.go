package graph

//go:generate sh -c "cd .. && go run ./tools/gqlgen && go run ./graph/printschema"
