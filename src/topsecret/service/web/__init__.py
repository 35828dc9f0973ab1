"""The pages: templates filled in for analysts, owners and accounts."""
