package graph

//go:generate sh -c "cd .. && go tool gqlgen generate && go run ./graph/printschema"
