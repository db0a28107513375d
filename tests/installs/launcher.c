/* What Scripts\python.exe of a virtual environment does on Windows (PEP 405; CPython's PC/venvlauncher.c): it starts the
   interpreter TARGET with its own arguments and streams, waits for its end, and ends with its exit code. */

#include <wchar.h>
#include <windows.h>

static const wchar_t *skip_program(const wchar_t *line)
{
    BOOL quoted = FALSE;
    for (; *line && (quoted || (*line != L' ' && *line != L'\t')); line++)
        if (*line == L'"')
            quoted = !quoted;
    return line;
}

int main(void)
{
    const wchar_t *arguments = skip_program(GetCommandLineW());
    size_t length = wcslen(TARGET) + wcslen(arguments) + 3;
    wchar_t *line = HeapAlloc(GetProcessHeap(), 0, length * sizeof(wchar_t));
    STARTUPINFOW startup = {0};
    PROCESS_INFORMATION child;
    DWORD code = 1;
    _snwprintf(line, length, L"\"%ls\"%ls", TARGET, arguments);
    GetStartupInfoW(&startup);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child))
        return 101;
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &code);
    return (int)code;
}
