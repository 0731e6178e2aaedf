ALTER TABLE "resource_groups" ADD COLUMN "allowed_networks" jsonb NOT NULL DEFAULT '[]';
