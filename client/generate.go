package client

//go:generate sh -c "cd .. && go run ./tools/genqlient"
