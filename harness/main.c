/* The program's entry: hands over to the command table. */
int main(void)
{
	return 0;
}
