(void)snprintf(link->words, sizeof link->words, "%.2f times as fast; then %.23s binds (%.23s)",
	link->predicted / now, link->next_stage, link->next_resource);
}

static void reverse(struct recommendation *chain, size_t count)
